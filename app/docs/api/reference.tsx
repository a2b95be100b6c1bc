'use client';
import { useEffect, useRef, useState } from 'react';
import { appPath } from '../../../lib/contract/site';
import { useIsDark } from '../../shared/theme';
import { configuration } from './configuration';

/** The part of Scalar's browser build that this page uses. */
interface Scalar {
  createApiReference(element: Element, configuration: object): { destroy(): void };
}

const source = appPath('/scalar/standalone.js');
const description = appPath('/openapi.json');

/** The reference of all endpoints, which Scalar renders from our openapi.json. It loads nothing from other hosts. */
export function Reference() {
  const container = useRef<HTMLDivElement>(null);
  const [failed, setFailed] = useState(false);
  const isDark = useIsDark();

  useEffect(() => {
    if (isDark === undefined) return;
    let rendered: { destroy(): void } | undefined;
    let stopFixing = () => {};
    let unmounted = false;
    loadScalar().then(
      (scalar) => {
        if (unmounted || !container.current) return;
        const element = document.createElement('div');
        container.current.replaceChildren(element);
        rendered = scalar.createApiReference(element, configuration(isDark));
        stopFixing = fixAccessibility(container.current);
      },
      () => setFailed(true),
    );
    return () => {
      unmounted = true;
      stopFixing();
      rendered?.destroy();
    };
  }, [isDark]);

  return (
    <>
      {failed && (
        <p role="alert">
          The reference could not be loaded. <a href={description}>openapi.json</a> has the same
          content.
        </p>
      )}
      <noscript>
        This page needs JavaScript; <a href={description}>openapi.json</a> has the same content.
      </noscript>
      <div ref={container} className="reference" />
    </>
  );
}

/** Loads Scalar's script once. Resolves when it has run. */
function loadScalar(): Promise<Scalar> {
  const global = () => (window as { Scalar?: Scalar }).Scalar;
  const loaded = global();
  if (loaded) return Promise.resolve(loaded);
  return new Promise((resolve, reject) => {
    const script =
      document.querySelector<HTMLScriptElement>(`script[src="${source}"]`) ??
      document.head.appendChild(Object.assign(document.createElement('script'), { src: source }));
    const fail = () => {
      script.remove();
      reject(new Error(`${source} could not be loaded.`));
    };
    script.addEventListener('error', fail);
    script.addEventListener('load', () => {
      const scalar = global();
      if (scalar) resolve(scalar);
      else fail();
    });
  });
}

/**
 * Corrects the accessibility of Scalar's elements: buttons without a name, scrolling lists without keyboard
 * access, and wrong roles. Repeats this whenever Scalar changes its elements.
 *
 * @returns a function that ends this
 */
function fixAccessibility(root: Element): () => void {
  const fix = () => {
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
      // ARIA does not allow this role on an aside, which is already a landmark with a name.
      aside.removeAttribute('role');
    }
    for (const region of root.querySelectorAll('[role="region"][aria-labelledby]')) {
      region.removeAttribute('role');
    }
  };
  fix();
  const observer = new MutationObserver(fix);
  observer.observe(root, { childList: true, subtree: true });
  return () => observer.disconnect();
}

function nameOf(button: Element): string {
  return button.hasAttribute('aria-expanded') ? 'Show or hide' : 'Action';
}
