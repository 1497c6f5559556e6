// Matching of paths against patterns.

export type Parameters = Readonly<Record<string, string>>;

/** Match a path against a pattern such as `/schedules/:id` and return its parameters; null: no match. */
export function matchPath(form: string, path: string): Parameters | null {
  const wanted = partsOf(form);
  const given = partsOf(path);
  if (wanted.length !== given.length) {
    return null;
  }
  const found: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const text = given[index] ?? "";
    if (!part.startsWith(":")) {
      if (part !== text) return null;
      continue;
    }
    try {
      found[part.slice(1)] = decodeURIComponent(text);
    } catch {
      return null;
    }
  }
  return found;
}

function partsOf(path: string): string[] {
  return path.split("/").filter((part) => part !== "");
}
