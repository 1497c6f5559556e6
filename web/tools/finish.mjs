// After a build: how much a first visit loads, and a compressed copy of each file beside it.
// Fails when a first visit would load more than it may.

import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const MAX_BYTES = 250_000;
const FIRST_SCREEN = "src/screens/overview/index.tsx";
const FONTS = /geist(-mono)?-latin-wght-normal/;
const COMPRESSIBLE = /\.(html|js|css|svg)$/;

const out =
  process.env.FOLIOT_WEB_OUT ?? fileURLToPath(new URL("../../src/foliot/web_dist", import.meta.url));
const manifest = JSON.parse(readFileSync(join(out, ".vite/manifest.json"), "utf8"));

const found = new Set(["index.html", "theme.js", "mark.svg"]);

function visit(name) {
  const chunk = manifest[name];
  if (chunk === undefined) {
    throw new Error(`the build has no ${name}`);
  }
  if (found.has(chunk.file)) {
    return;
  }
  found.add(chunk.file);
  for (const file of chunk.css ?? []) found.add(file);
  for (const file of chunk.assets ?? []) if (FONTS.test(file)) found.add(file);
  for (const each of chunk.imports ?? []) visit(each);
}

visit("index.html");
visit(FIRST_SCREEN);
// What the first screen loads by itself right away.
for (const each of manifest[FIRST_SCREEN].dynamicImports ?? []) visit(each);

const sizes = [...found].map((file) => {
  const bytes = readFileSync(join(out, file));
  return [COMPRESSIBLE.test(file) ? gzipSync(bytes, { level: 9 }).length : bytes.length, file];
});
const total = sizes.reduce((sum, [size]) => sum + size, 0);
for (const [size, file] of sizes.sort((a, b) => b[0] - a[0])) {
  console.log(`${(size / 1000).toFixed(1).padStart(8)} kB  ${file}`);
}
console.log(
  `${(total / 1000).toFixed(1).padStart(8)} kB  of at most ${MAX_BYTES / 1000} kB on a first visit`,
);
if (total > MAX_BYTES) {
  console.error("The first visit loads too much.");
  process.exit(1);
}

for (const file of readdirSync(out, { recursive: true })) {
  const path = join(out, file);
  if (COMPRESSIBLE.test(file) && statSync(path).isFile()) {
    writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
  }
}
rmSync(join(out, ".vite"), { recursive: true });
