'use client';
import { useState } from 'react';

/** Copies a block of code and announces the outcome. */
export function CopyButton(props: { what: string; text: string }) {
  const [outcome, setOutcome] = useState('');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(props.text);
      setOutcome('Copied');
    } catch {
      setOutcome('Select the text and copy it by hand');
    }
    setTimeout(() => setOutcome(''), 2000);
  };
  return (
    <>
      <span role="status" className="copied">
        {outcome}
      </span>
      <button type="button" aria-label={`Copy ${props.what}`} onClick={() => void copy()}>
        Copy
      </button>
    </>
  );
}
