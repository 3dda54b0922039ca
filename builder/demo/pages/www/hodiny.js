addEventListener("load", () => { document.title += ", " + new Date().getFullYear(); });
