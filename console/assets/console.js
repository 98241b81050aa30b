// Keeps the page's content as the server's events say. Without this script the page shows what it had when it was loaded.
"use strict";

(() => {
  const live = document.getElementById("live");
  const status = document.getElementById("status");
  if (!live.dataset.events) return;

  const say = (text, state) => {
    status.textContent = text;
    status.dataset.state = state;
  };

  const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.dataset.key : undefined);

  // fits reports whether a node can become another one by changes within it.
  const fits = (node, next) => node.nodeName === next.nodeName && keyOf(node) === keyOf(next);

  // become changes a node into another one, and leaves alone what is equal: what the reader has selected stays so.
  const become = (node, next) => {
    if (node.isEqualNode(next)) return;
    if (node.nodeType !== Node.ELEMENT_NODE) {
      node.nodeValue = next.nodeValue;
      return;
    }
    for (const { name } of [...node.attributes]) if (!next.hasAttribute(name)) node.removeAttribute(name);
    for (const { name, value } of next.attributes) if (node.getAttribute(name) !== value) node.setAttribute(name, value);
    children(node, next);
  };

  // children gives a node the children of another one. Those with a key are moved, the others stay in their order.
  const children = (node, next) => {
    const known = new Map();
    for (const child of node.children) if (keyOf(child)) known.set(keyOf(child), child);
    let at = node.firstChild;
    for (const wanted of [...next.childNodes]) {
      const key = keyOf(wanted);
      let child = key ? known.get(key) : at && !keyOf(at) && fits(at, wanted) ? at : null;
      if (child && fits(child, wanted)) {
        known.delete(key);
        if (child === at) at = at.nextSibling;
        else node.insertBefore(child, at);
        become(child, wanted);
      } else {
        if (key) wanted.classList.add("fresh");
        node.insertBefore(wanted, at);
      }
    }
    while (at) {
      const rest = at.nextSibling;
      at.remove();
      at = rest;
    }
  };

  let source = null;
  const open = () => {
    if (source || document.hidden) return;
    say("connecting", "waiting");
    source = new EventSource(live.dataset.events);
    source.onopen = () => say("live", "live");
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) {
        source = null;
        say("not live: load the page again", "lost");
      } else say("not live: trying again", "lost");
    };
    source.onmessage = (event) => {
      const next = document.createElement("template");
      next.innerHTML = event.data;
      children(live, next.content);
    };
  };
  const close = () => {
    if (source) source.close();
    source = null;
    say("paused", "waiting");
  };

  // A page that nobody sees costs no reads.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", open);
  open();
})();
