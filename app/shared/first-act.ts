import { useEffect, useState } from 'react';

/** What tells that a person is here: a pointer that moves, or a focus, comes well before a click. */
const acts = 'pointermove pointerdown click keydown focusin input dragenter wheel'.split(' ');

let acted: Promise<void> | null = null;

/** Resolves with the first thing that a person does on a page of the app: what follows from that is loaded then. */
export function firstAct(): Promise<void> {
  acted ??= new Promise((resolve) => {
    // On another page, before this was called.
    if (navigator.userActivation?.hasBeenActive) resolve();
    for (const act of acts) {
      window.addEventListener(act, () => resolve(), { once: true, capture: true, passive: true });
    }
  });
  return acted;
}

/** Whether {@link firstAct} has resolved. */
export function useActed(): boolean {
  const [has, setHas] = useState(false);
  useEffect(() => void firstAct().then(() => setHas(true)), []);
  return has;
}
