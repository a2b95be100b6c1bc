import Link from 'next/link';
import { useEffect, useRef, useState } from 'react';
import type { CreatedKey } from './keys-state';

/** The whole key, this once. */
export function CreatedKeyPanel({ created, onDone }: { created: CreatedKey; onDone: () => void }) {
  const { key, record } = created;
  const title = useRef<HTMLHeadingElement>(null);
  const code = useRef<HTMLElement>(null);
  const [copied, setCopied] = useState<'yes' | 'no' | null>(null);
  useEffect(() => title.current?.focus(), []);
  const copy = () => {
    navigator.clipboard.writeText(key).then(
      () => setCopied('yes'),
      () => {
        // No permission, or a page without https: the key is selected to be copied by hand.
        if (code.current) getSelection()?.selectAllChildren(code.current);
        setCopied('no');
      },
    );
  };
  return (
    <section className="panel keys-created" aria-labelledby="created-title">
      <h2 id="created-title" ref={title} tabIndex={-1}>
        Copy “{record.name}” now
      </h2>
      <p>It is shown only this once: the server keeps no copy that could be shown again.</p>
      <p className="keys-whole">
        <code ref={code}>{key}</code>
      </p>
      <div className="actions">
        <button type="button" className="primary" onClick={copy}>
          Copy
        </button>
        <button type="button" onClick={onDone}>
          I have it
        </button>
        <span role="status" className="copied">
          {copied === 'yes' && 'Copied.'}
          {copied === 'no' && 'It is selected: press Ctrl+C or ⌘C.'}
        </span>
      </div>
      {record.kind === 'worker' && (
        <p className="field-hint">
          Paste it on the page <NextLink href="/serve">Serve</NextLink>, or give it to{' '}
          <code>npm run worker -- --token</code>.
        </p>
      )}
      {record.kind === 'api' && (
        <p className="field-hint">
          Send it as <code>Authorization: Bearer …</code>; <NextLink href="/docs">Docs</NextLink>{' '}
          show how.
        </p>
      )}
    </section>
  );
}

function NextLink(props: { href: '/serve' | '/docs'; children: string }) {
  return (
    <Link href={props.href} prefetch={false}>
      {props.children}
    </Link>
  );
}
