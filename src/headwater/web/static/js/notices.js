// Short words at the edge of the page about what just happened, read out by screen readers.
const place = document.getElementById("notices");

export function notice(words, action = undefined) {
  const line = document.createElement("p");
  line.textContent = words;
  if (action) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = action.label;
    button.addEventListener("click", () => {
      line.remove();
      action.run();
    });
    line.append(button);
  }
  place.replaceChildren(line);
  setTimeout(() => line.remove(), 8000);
}
