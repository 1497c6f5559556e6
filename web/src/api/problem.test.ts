import { expect, test } from "vitest";
import { ProblemError, problemBesides, problemOf } from "./problem";

const document = {
  status: 422,
  code: "timezone",
  detail: "trigger.timezone: there is no such zone",
  request_id: "9f0c",
  errors: [
    {
      pointer: "/trigger/timezone",
      code: "timezone",
      detail: "there is no such zone",
      hint: "did you mean Europe/Berlin?",
    },
    { pointer: "/name", code: "taken", detail: "is taken", hint: "" },
  ],
};
const error = ProblemError.of(new Response(null, { status: 422 }), document);

test("a field finds what is wrong with it by its pointer", () => {
  expect(problemOf(error, "/trigger/timezone")).toEqual({
    text: "There is no such zone.",
    hint: "Did you mean Europe/Berlin?",
  });
  expect(problemOf(error, "/target/url")).toBeNull();
});

test("what no field shows is told apart from it", () => {
  expect(problemBesides(error, ["/trigger/timezone"])).toBe("Name is taken.");
  expect(problemBesides(error, ["/trigger/timezone", "/name"])).toBeNull();
});

test("an answer that is no problem document is an error all the same", () => {
  const other = ProblemError.of(
    new Response("<html>", { status: 502, headers: { "retry-after": "3" } }),
    "<html>",
  );
  expect(other).toMatchObject({ message: "The server answered 502.", isPassing: true, retryAfter: 3 });
});
