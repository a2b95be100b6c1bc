import { useEffect, useState } from 'react';

/** A seed that copies itself when clicked. */
export function SeedButton({ seed }: { seed: number }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 2000);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = () => {
    navigator.clipboard.writeText(String(seed)).then(
      () => setCopied(true),
      () => {}, // no permission: the number is on the page to be selected
    );
  };
  return (
    <button type="button" className="inline" title="Copy the seed" onClick={copy}>
      {seed}
      <span role="status" className="copied">
        {copied ? ' copied' : ''}
      </span>
    </button>
  );
}
