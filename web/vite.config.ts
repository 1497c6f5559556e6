import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { licenses } from "./tools/licenses.mjs";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const server = process.env.FOLIOT_URL ?? "http://127.0.0.1:8700";

export default defineConfig({
  // The server puts the path that it is mounted at before each "./" of index.html.
  base: "./",
  plugins: [react(), tailwindcss(), licenses()],
  resolve: {
    alias: {
      "@": here("./src"),
      // Radix locks scrolling by a <style> element, which our Content-Security-Policy refuses.
      "react-style-singleton": here("./src/ui/adopted-style.ts"),
    },
  },
  build: {
    outDir: process.env.FOLIOT_WEB_OUT ?? here("../src/foliot/web_dist"),
    emptyOutDir: true,
    target: "es2022",
    manifest: true,
    // A data: address is refused for everything but images.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: {
    proxy: Object.fromEntries(["/api", "/sign-in", "/sign-out"].map((path) => [path, { target: server }])),
  },
});
