import { createElement, Fragment, type ReactNode } from 'react';
import { CopyButton } from './copy-button';
import { readSnippet, type SnippetName } from './snippet';

/** One section of the page, whose heading is a link target. */
export function Section(props: { id: string; title: string; children: ReactNode }) {
  return (
    <section aria-labelledby={props.id}>
      <h2 id={props.id}>{props.title}</h2>
      {props.children}
    </section>
  );
}

/** A block of code, which can be scrolled with the keyboard. */
export function Code(props: { label: string; text: string }) {
  return (
    <figure className="code clip bordered rounded on-surface">
      <figcaption className="row gap-12 muted text-m">
        <span>{props.label}</span>
        <CopyButton label={`Copy ${props.label}`} text={props.text} />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <pre tabIndex={0}>
        <code>{props.text}</code>
      </pre>
    </figure>
  );
}

/** A file of `snippets/`. */
export async function Snippet(props: { name: SnippetName; label: string }) {
  return <Code label={props.label} text={await readSnippet(props.name)} />;
}

/** A sentence whose backticks mark code. */
export function Text(props: { children: string }) {
  const parts = props.children.split(/`([^`]+)`/);
  const shown = parts.map((part, index) =>
    index % 2 === 1 ? createElement('code', {}, part) : part,
  );
  return createElement(Fragment, {}, ...shown);
}

/** A table that scrolls horizontally on narrow screens. */
export function Table(props: {
  label: string;
  columns: readonly string[];
  rows: readonly (readonly ReactNode[])[];
}) {
  const heads = props.columns.map((column) => createElement('th', { scope: 'col' }, column));
  const rows = props.rows.map((cells) =>
    createElement('tr', {}, ...cells.map((cell) => createElement('td', {}, cell))),
  );
  return (
    <section
      className="table relative bordered rounded on-surface"
      aria-label={props.label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
      tabIndex={0}
    >
      <table>
        <thead>{createElement('tr', {}, ...heads)}</thead>
        {createElement('tbody', {}, ...rows)}
      </table>
    </section>
  );
}
