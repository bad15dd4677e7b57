// Returns one sentence for each fault of the layout of a page.
const SLACK = 2;
const root = document.documentElement;
const faults = [];
const name = (element) => {
  const id = element.id ? `#${element.id}` : "";
  const classes = [...element.classList].map((one) => `.${one}`).join("");
  const text = element.textContent.trim().replace(/\s+/g, " ").slice(0, 40);
  return `<${element.localName}${id}${classes}> "${text}"`;
};

if (root.scrollWidth > root.clientWidth) {
  faults.push(`the page has a horizontal scroll bar: ${root.scrollWidth} in ${root.clientWidth} pixels`);
}

// What a user reads or uses: texts, each with its lines, and controls. What lies to the left of the page is hidden on purpose.
const shown = [];
const add = (element, rectangles, text) => {
  for (const rectangle of rectangles) {
    if (rectangle.width > 0 && rectangle.height > 0 && rectangle.right > 0) shown.push({ element, rectangle, text });
  }
};
const CONTROLS = new Set(["button", "input", "progress", "select", "svg", "textarea"]);
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  if (node.nodeType === Node.TEXT_NODE) {
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest("select, svg, script") || !parent.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    add(parent, range.getClientRects(), true);
  } else if (CONTROLS.has(node.localName) && node.type !== "hidden" && node.checkVisibility()) {
    add(node, [node.getBoundingClientRect()], false);
  }
}

for (const { element, rectangle } of shown) {
  if (rectangle.left < -SLACK || rectangle.right > root.clientWidth + SLACK) {
    faults.push(`${name(element)} is cut at the edge of the page: ${rectangle.left} to ${rectangle.right}`);
  }
  for (let box = element; box && box !== document.body; box = box.parentElement) {
    const style = getComputedStyle(box);
    const edge = box.getBoundingClientRect();
    const cuts = style.overflowX !== "visible" && style.overflowX !== "auto";
    if (cuts && box.localName !== "svg" && (rectangle.right > edge.right + SLACK || rectangle.bottom > edge.bottom + SLACK)) {
      faults.push(`${name(element)} is cut by ${name(box)}`);
    }
  }
}

// A control that is narrower than what it says. The arrow of a list takes about its height.
const pen = document.createElement("canvas").getContext("2d");
for (const control of document.querySelectorAll("button, select")) {
  if (!control.checkVisibility()) continue;
  const style = getComputedStyle(control);
  pen.font = style.font;
  const padding = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight) + parseFloat(style.fontSize);
  const isCut = control.localName === "select"
    ? pen.measureText(control.selectedOptions[0]?.text ?? "").width + padding > control.clientWidth
    : control.scrollWidth > control.clientWidth + SLACK;
  if (isCut) faults.push(`${name(control)} is narrower than its text`);
}

// Two that cover each other, unless one has the other in it.
shown.sort((one, other) => one.rectangle.top - other.rectangle.top);
for (let first = 0; first < shown.length; first += 1) {
  const one = shown[first];
  for (let second = first + 1; second < shown.length; second += 1) {
    const other = shown[second];
    if (other.rectangle.top > one.rectangle.bottom - SLACK) break;
    const width = Math.min(one.rectangle.right, other.rectangle.right) - Math.max(one.rectangle.left, other.rectangle.left);
    const height = Math.min(one.rectangle.bottom, other.rectangle.bottom) - other.rectangle.top;
    const within = one.element === other.element || one.element.contains(other.element) && !one.text
      || other.element.contains(one.element) && !other.text;
    if (width > SLACK && height > SLACK && !within) {
      faults.push(`${name(one.element)} and ${name(other.element)} overlap by ${Math.round(width)} x ${Math.round(height)} pixels`);
    }
  }
}
return [...new Set(faults)].slice(0, 20);
