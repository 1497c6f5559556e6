// A plugin of Vite: writes THIRD_PARTY_LICENSES.txt, which names every package that the built UI contains, with
// its version, its licence and the text of the licence. The list comes from the modules of the bundle, so what is
// installed only for the build is not in it.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const FILE_NAME = "THIRD_PARTY_LICENSES.txt";

const INSTALLED = fileURLToPath(new URL("../node_modules/", import.meta.url));
const TEXT = /^(licen[cs]e|copying|notice|ofl)(\.|-|$)/i;

/** The folder of the package that a file belongs to; null: it is none of an installed package. */
export function packageFolder(file) {
  const at = file.lastIndexOf("/node_modules/");
  if (at < 0) {
    return null;
  }
  const [first, second] = file.slice(at + "/node_modules/".length).split("/");
  const name = first.startsWith("@") ? `${first}/${second}` : first;
  return join(file.slice(0, at), "node_modules", name);
}

/** What bundlers add themselves has names such as "\0vite/preload-helper.js". */
function ownerOfVirtual(id) {
  const name = /^\0(vite|rolldown)\b/.exec(id)?.[1];
  return name === undefined ? null : join(INSTALLED, name);
}

/** CSS that other CSS imports is no module of its own. */
export function importedBy(file) {
  const names = [...readFileSync(file, "utf8").matchAll(/@import\s+(?:url\()?["']([^"']+)["']/g)];
  return names.flatMap(([, name]) => {
    if (!name.startsWith(".")) {
      return [join(INSTALLED, name)];
    }
    const imported = join(dirname(file), name);
    return [imported, ...importedBy(imported)];
  });
}

function describe(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  if (typeof license !== "string" || license === "") {
    throw new Error(`${name} ${version} does not say what its licence is`);
  }
  const texts = readdirSync(folder)
    .filter((file) => TEXT.test(file))
    .sort()
    .map((file) => readFileSync(join(folder, file), "utf8").trim());
  return { name, version, license, text: texts.join("\n\n") };
}

export function render(packages) {
  const line = "-".repeat(80);
  const parts = packages.map(({ name, version, license, text }) =>
    [
      line,
      `${name} ${version}`,
      `License: ${license}`,
      "",
      text || "The package contains no licence text.",
    ].join("\n"),
  );
  return `The user interface of Foliot contains these packages.\n\n${parts.join("\n\n")}\n`;
}

export function licenses() {
  return {
    name: "foliot-licenses",
    apply: "build",
    generateBundle(_options, bundle) {
      const files = Object.values(bundle).flatMap((output) =>
        output.type === "chunk"
          ? Object.keys(output.modules)
          : output.originalFileNames.map((file) => resolve(INSTALLED, "..", file)),
      );
      files.push(...[...this.getModuleIds()].filter((id) => id.endsWith(".css")).flatMap(importedBy));
      const folders = new Set(files.map((file) => ownerOfVirtual(file) ?? packageFolder(file)));
      const packages = [...folders]
        .filter((folder) => folder !== null && existsSync(join(folder, "package.json")))
        .map(describe)
        .sort((a, b) => (a.name < b.name ? -1 : 1));
      this.emitFile({ type: "asset", fileName: FILE_NAME, source: render(packages) });
    },
  };
}
