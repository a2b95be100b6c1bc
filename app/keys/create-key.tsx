import Link from 'next/link';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { Choice } from '../shared/fields';
import type { CreatedKey } from './keys-state';
import {
  emptyForm,
  type KeyForm,
  lifetimes,
  type Preset,
  presets,
  sharedSentence,
} from './keys-view';

/** The form for a new key or worker token. */
export function CreateKey(props: { busy: boolean; onCreate: (form: KeyForm) => void }) {
  const [form, setForm] = useState(emptyForm);
  const fill = (part: Partial<KeyForm>) => setForm((before) => ({ ...before, ...part }));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    props.onCreate(form);
    fill({ name: '' });
  };
  return (
    <section className="panel" aria-labelledby="create-title">
      <h2 id="create-title">Create a key</h2>
      <form className="keys-form" onSubmit={submit}>
        <KindField kind={form.kind} onChange={(kind) => fill({ kind })} />
        <div className="field">
          <label htmlFor="key-name">Name</label>
          <input
            id="key-name"
            type="text"
            required
            maxLength={100}
            pattern=".*\S.*"
            title="A name that is not empty"
            autoComplete="off"
            placeholder={form.kind === 'api' ? 'What it is for' : 'Which machine'}
            value={form.name}
            onChange={(event) => fill({ name: event.target.value })}
          />
        </div>
        {form.kind === 'api' && (
          <PresetField preset={form.preset} onChange={(preset) => fill({ preset })} />
        )}
        <div className="field">
          <label htmlFor="key-days">Ends</label>
          <select
            id="key-days"
            value={form.days}
            onChange={(event) => fill({ days: event.target.value })}
          >
            {lifetimes.map(({ days, name }) => (
              <option key={days} value={days}>
                {name}
              </option>
            ))}
          </select>
        </div>
        <div className="field">
          <label className="keys-check" htmlFor="key-shared">
            <input
              id="key-shared"
              type="checkbox"
              aria-describedby="key-shared-hint"
              checked={form.shared}
              onChange={(event) => fill({ shared: event.target.checked })}
            />
            Shared with other owners
          </label>
          <p className="field-hint" id="key-shared-hint">
            {sharedSentence(form)}
          </p>
        </div>
        <button type="submit" className="primary" disabled={props.busy}>
          {form.kind === 'api' ? 'Create the key' : 'Create the token'}
        </button>
      </form>
    </section>
  );
}

const kinds = [
  { kind: 'api', name: 'API key', hint: 'For programs' },
  { kind: 'worker', name: 'Worker token', hint: 'For tabs that serve' },
] as const;

function KindField(props: { kind: KeyForm['kind']; onChange: (kind: KeyForm['kind']) => void }) {
  return (
    <fieldset className="field">
      <legend>Kind</legend>
      <div className="choices">
        {kinds.map(({ kind, name, hint }) => (
          <Choice
            key={kind}
            name="key-kind"
            checked={props.kind === kind}
            onChange={() => props.onChange(kind)}
          >
            <span>
              {name}
              <small>{hint}</small>
            </span>
          </Choice>
        ))}
      </div>
    </fieldset>
  );
}

function PresetField(props: { preset: Preset; onChange: (preset: Preset) => void }) {
  const names = Object.keys(presets) as Preset[];
  return (
    <div className="field">
      <label htmlFor="key-preset">May</label>
      <select
        id="key-preset"
        aria-describedby="key-preset-hint"
        value={props.preset}
        onChange={(event) => {
          const chosen = names.find((name) => name === event.target.value);
          if (chosen) props.onChange(chosen);
        }}
      >
        {names.map((name) => (
          <option key={name} value={name}>
            {presets[name].name}
          </option>
        ))}
      </select>
      <p className="field-hint" id="key-preset-hint">
        {presets[props.preset].hint}
      </p>
    </div>
  );
}

/** The complete new key, which is shown only once. */
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
        // No permission, or a page without https: select the key, so that the user can copy it.
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
      <p>It is shown only once: the server stores a hash and not the key.</p>
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
