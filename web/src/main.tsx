import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "@/app/App";
import { followTheme } from "@/settings/theme";
import "@/style/index.css";

followTheme();

// A chunk is missing because the server was updated. Reload to get the new page, at most once a minute.
window.addEventListener("vite:preloadError", (event) => {
  const key = "foliot.reloaded";
  const before = Number(sessionStorage.getItem(key) ?? 0);
  if (Date.now() - before > 60_000) {
    event.preventDefault();
    sessionStorage.setItem(key, String(Date.now()));
    window.location.reload();
  }
});

const root = document.getElementById("root");
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
