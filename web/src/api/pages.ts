// Pagination: each page carries the token of the next one.

interface Page {
  next_page_token: string;
}

/** The token of the next page, for `getNextPageParam`; undefined: this is the last page. */
export function tokenAfter(last: Page): string | undefined {
  return last.next_page_token === "" ? undefined : last.next_page_token;
}
