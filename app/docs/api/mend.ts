/**
 * Says by attributes what Scalar shows by pictures alone: names of its copy buttons, lists that
 * scroll, and roles that promise what is not there. Done again whenever it draws something.
 *
 * @returns what ends it
 */
export function mendAccessibility(root: Element): () => void {
  const mend = () => {
    for (const button of root.querySelectorAll('button:not([aria-label])')) {
      const isCopy = button.matches('[class*="copy"]');
      if (isCopy || button.textContent?.trim() === '') {
        button.setAttribute('aria-label', isCopy ? 'Copy' : nameOf(button));
      }
    }
    for (const button of root.querySelectorAll('button[aria-selected]:not([role])')) {
      button.removeAttribute('aria-selected');
    }
    for (const list of root.querySelectorAll('ul.endpoints:not([tabindex])')) {
      list.setAttribute('tabindex', '0');
    }
    for (const header of root.querySelectorAll('header:not([role])')) {
      header.setAttribute('role', 'group');
    }
    for (const aside of root.querySelectorAll('aside[role="navigation"]')) {
      // An aside may not be a navigation; as a landmark of its own it has a name already.
      aside.removeAttribute('role');
    }
    for (const region of root.querySelectorAll('[role="region"][aria-labelledby]')) {
      region.removeAttribute('role');
    }
  };
  mend();
  const observer = new MutationObserver(mend);
  observer.observe(root, { childList: true, subtree: true });
  return () => observer.disconnect();
}

function nameOf(button: Element): string {
  return button.hasAttribute('aria-expanded') ? 'Show or hide' : 'Action';
}
