// Requests to our own server. A refused one throws an error with the words of its problem document.
import { said } from "./words.js";

const formKey = document.querySelector('meta[name="form-key"]')?.content ?? "";

export class Refused extends Error {
  constructor(problem) {
    super(problem.detail ?? said("The server could not understand the request."));
    this.problem = problem;
  }
}

export async function ask(path, method = "GET", body = undefined) {
  const headers = { Accept: "application/json", "X-Form-Key": formKey };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  if (answer.status === 204) return null;
  const found = await answer.json();
  if (!answer.ok) throw new Refused(found);
  return found;
}

export async function askForHtml(path) {
  const answer = await fetch(path, { headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Refused({ detail: said("The server answered {status}.", { status: answer.status }) });
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}
