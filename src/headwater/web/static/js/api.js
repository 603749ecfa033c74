// Requests to our own server. A refused one throws an error with the words of its problem document.
const formKey = document.querySelector('meta[name="form-key"]')?.content ?? "";

export class Refused extends Error {
  constructor(problem) {
    super(problem.detail ?? "The server did not understand.");
    this.problem = problem;
  }
}

export async function ask(path, method = "GET", body = undefined) {
  const headers = { Accept: "application/json", "X-Form-Key": formKey };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  if (answer.status === 204) return null;
  const said = await answer.json();
  if (!answer.ok) throw new Refused(said);
  return said;
}

export async function askForHtml(path) {
  const answer = await fetch(path, { headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Refused({ detail: `The server answered ${answer.status}.` });
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}
