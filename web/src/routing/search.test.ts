import { expect, test } from "vitest";
import { addressOf, anyOf, oneOf, readSearch, text, texts, writeSearch } from "./search";

const shape = {
  q: text(),
  state: anyOf(["active", "paused"] as const),
  sort: oneOf(["name", "-name"] as const, "name"),
  label: texts(),
};

test("an empty address gives every field its initial value", () => {
  expect(readSearch(shape, "")).toEqual({ q: "", state: [], sort: "name", label: [] });
});

test("a parameter that is given several times gives several values", () => {
  expect(readSearch(shape, "?state=paused&state=active&label=a:1&label=b:2")).toMatchObject({
    state: ["active", "paused"],
    label: ["a:1", "b:2"],
  });
});

test("what is not allowed counts as not given", () => {
  expect(readSearch(shape, "?state=burning&sort=colour")).toMatchObject({ state: [], sort: "name" });
});

test("writing changes what is named and leaves the rest, known or not", () => {
  expect(writeSearch(shape, "?q=night&panel=1", { state: ["paused"] })).toBe("?q=night&panel=1&state=paused");
});

test("an initial value is not written", () => {
  expect(writeSearch(shape, "?sort=-name&q=a", { sort: "name", q: "" })).toBe("");
});

test("what is written is read again", () => {
  const values = { q: "a&b=c", state: ["paused"], sort: "-name", label: ["team:pay & more"] } as const;
  expect(readSearch(shape, addressOf("", shape, values))).toEqual(values);
});
