'use client';
import { useEffect, useRef, useState } from 'react';
import { configuration } from './configuration';
import { mendAccessibility } from './mend';

/** The part of Scalar's browser build that is used here. */
interface Scalar {
  createApiReference(element: Element, configuration: object): { destroy(): void };
}

const source = '/scalar/standalone.js';

/** Every endpoint, drawn by Scalar from our own openapi.json; nothing comes from elsewhere. */
export function Reference() {
  const place = useRef<HTMLDivElement>(null);
  const [failed, setFailed] = useState(false);
  const isDark = useDarkScheme();

  useEffect(() => {
    if (isDark === undefined) return;
    let drawn: { destroy(): void } | undefined;
    let endMending = () => {};
    let gone = false;
    loadScalar().then(
      (scalar) => {
        if (gone || !place.current) return;
        const element = document.createElement('div');
        place.current.replaceChildren(element);
        drawn = scalar.createApiReference(element, configuration(isDark));
        endMending = mendAccessibility(place.current);
      },
      () => setFailed(true),
    );
    return () => {
      gone = true;
      endMending();
      drawn?.destroy();
    };
  }, [isDark]);

  return (
    <>
      {failed && (
        <p role="alert">
          The reference could not be loaded. <a href="/openapi.json">openapi.json</a> has all of it.
        </p>
      )}
      <noscript>
        This page needs JavaScript; <a href="/openapi.json">openapi.json</a> has all of it.
      </noscript>
      <div ref={place} className="reference" />
    </>
  );
}

/** Whether the system asks for dark colours; undefined until the page runs. */
function useDarkScheme(): boolean | undefined {
  const [isDark, setIsDark] = useState<boolean>();
  useEffect(() => {
    const query = matchMedia('(prefers-color-scheme: dark)');
    const read = () => setIsDark(query.matches);
    read();
    query.addEventListener('change', read);
    return () => query.removeEventListener('change', read);
  }, []);
  return isDark;
}

/** Resolves when the script has run; a second call waits for the same script. */
function loadScalar(): Promise<Scalar> {
  const present = () => (window as { Scalar?: Scalar }).Scalar;
  const there = present();
  if (there) return Promise.resolve(there);
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
      const scalar = present();
      if (scalar) resolve(scalar);
      else fail();
    });
  });
}
