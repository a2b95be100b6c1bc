'use client';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { appPath, toKinoraError } from '../../../lib/contract';

/** What the reader of the page may fill in. */
export interface SendProps {
  readonly method: string;
  readonly path: `/${string}`;
  readonly parameters: readonly {
    readonly name: string;
    readonly in: 'path' | 'query' | 'header';
    readonly example: string;
    readonly required: boolean;
  }[];
  /** JSON to begin with; `file` for a form with a file; null without a body. */
  readonly body: string | null;
}

/** The key that was typed last, for the other forms of the page. It is stored nowhere. */
let lastKey = '';

/** Sends a request to this server and shows its answer. */
export function Send({ method, path, parameters, body }: SendProps) {
  const [answer, setAnswer] = useState<{ status: string; text: string } | null>(null);
  const key = useRef<HTMLInputElement>(null);
  const sending = useRef<AbortController | null>(null);
  useEffect(() => () => sending.current?.abort(), []);

  async function send(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const textOf = (name: string) => String(form.get(name) ?? '');
    sending.current?.abort();
    const control = new AbortController();
    sending.current = control;
    const show = (status: string, text = '') =>
      !control.signal.aborted && setAnswer({ status, text });
    show('Sending …');
    lastKey = textOf('key');
    const headers = new Headers({ Authorization: `Bearer ${lastKey}` });
    const query = new URLSearchParams();
    let target: `/${string}` = path;
    for (const { name, in: place } of parameters) {
      const value = textOf(`parameter ${name}`);
      if (place === 'path')
        target = `/${target.slice(1).replace(`{${name}}`, encodeURIComponent(value))}`;
      else if (value !== '' && place === 'query') query.set(name, value);
      else if (value !== '') headers.set(name, value);
    }
    const file = form.get('file');
    const upload = new FormData();
    if (file) upload.set('file', file);
    else if (body !== null) headers.set('Content-Type', 'application/json');
    try {
      const response = await fetch(appPath(query.size > 0 ? `${target}?${query}` : target), {
        method,
        headers,
        signal: control.signal,
        body: body === null ? null : file ? upload : textOf('body'),
      });
      const status = `${response.status} ${response.statusText}`;
      let text = '';
      // Events are shown as they come.
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done = true, value = '' } = (await reader?.read()) ?? {};
        text += value;
        show(status, done ? indented(text) : text);
        if (done) return;
      }
    } catch (thrown) {
      show(`No answer: ${toKinoraError(thrown).message}`);
    }
  }

  return (
    <details
      className="send"
      onToggle={() => {
        if (key.current) key.current.value ||= lastKey;
      }}
    >
      <summary>Send this request</summary>
      <form className="stack prose" onSubmit={(event) => void send(event)}>
        <label className="stack gap-4">
          API key
          <input ref={key} name="key" type="password" autoComplete="off" required />
        </label>
        {parameters.map(({ name, example, required }) => (
          <label key={name} className="stack gap-4">
            {name}
            <input
              type="text"
              name={`parameter ${name}`}
              defaultValue={example}
              required={required}
            />
          </label>
        ))}
        {body === 'file' && (
          <label className="stack gap-4">
            file
            <input name="file" type="file" required />
          </label>
        )}
        {body !== null && body !== 'file' && (
          <label className="stack gap-4">
            Body
            <textarea name="body" rows={8} spellCheck={false} defaultValue={body} />
          </label>
        )}
        <button type="submit" className="primary">
          Send
        </button>
      </form>
      <p role="status">{answer?.status}</p>
      {answer?.text && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
        <section className="answer bordered rounded on-surface" aria-label="Answer" tabIndex={0}>
          <pre>{answer.text}</pre>
        </section>
      )}
    </details>
  );
}

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // No JSON: shown as it came.
    return text;
  }
}
