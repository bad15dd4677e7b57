// A long name in a table, such as that of a test or an option, may break after these characters.
for (const code of document.querySelectorAll("td code, td a")) {
    const texts = [...code.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE);
    for (const text of texts) {
        const parts = text.data.split(/(?<=\w[_/.:=,])(?=\w)/);
        text.replaceWith(...parts.flatMap((part) => [part, document.createElement("wbr")]).slice(0, -1));
    }
}
