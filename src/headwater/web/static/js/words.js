// Words in the language of the page. English is in the scripts; the page brings every other language along.
const translated = JSON.parse(document.querySelector('meta[name="words"]')?.content ?? "{}");

export function said(message, values = {}) {
  const words = translated[message] ?? message;
  return Object.entries(values).reduce((text, [name, value]) => text.replaceAll(`{${name}}`, String(value)), words);
}
