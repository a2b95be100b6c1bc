'use client';
import { useRef, useState } from 'react';
import { Button } from '../shared/button';

/** The documentation is English. */
const english = {
  copy: 'Copy',
  copied: 'Copied',
  byHand: 'Select the text and copy it by hand',
};

/** Copies a block of code and announces the outcome. */
export function CopyButton(props: {
  /** Name of the button: what it copies. */
  label: string;
  text: string;
  /** What a page in another language says instead. */
  words?: typeof english;
}) {
  const { label, text, words = english } = props;
  const [outcome, setOutcome] = useState('');
  const shown = useRef<ReturnType<typeof setTimeout>>(undefined);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setOutcome(words.copied);
    } catch {
      // The browser or its user does not allow it.
      setOutcome(words.byHand);
    }
    // Pressed again, it says so for its whole time.
    clearTimeout(shown.current);
    shown.current = setTimeout(() => setOutcome(''), 2000);
  };
  return (
    <>
      <span role="status" className="copied muted">
        {outcome}
      </span>
      <Button aria-label={label} onClick={() => void copy()}>
        {words.copy}
      </Button>
    </>
  );
}
