import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Metadata } from 'next';
import type { ReactNode } from 'react';
import { Table, Text } from '../../docs/parts';
import '../../docs/docs.css';
import { SiteHeader } from '../../shared/site-header';

export const metadata: Metadata = { title: 'Mini · Kinora' };
/** The page is rendered when the app is built. */
export const dynamic = 'force-static';

const card = path.join(process.cwd(), 'public', 'models', 'mini', 'README.md');

/** The model card of the demonstration model: the README beside its weights. */
export default async function Page() {
  const blocks = (await readFile(card, 'utf8')).trim().split(/\n{2,}/);
  return (
    <>
      <SiteHeader here="/models" />
      <main id="main" tabIndex={-1} className="docs" lang="en">
        <article className="docs-text">{blocks.map(showBlock)}</article>
      </main>
    </>
  );
}

/** A heading, list, table or paragraph: what of Markdown the card has. */
function showBlock(block: string, index: number, all: readonly string[]): ReactNode {
  const lines = block.split('\n');
  const [first = ''] = lines;
  if (first.startsWith('# ')) return <h1 key={block}>{first.slice(2)}</h1>;
  if (first.startsWith('## ')) return <h2 key={block}>{first.slice(3)}</h2>;
  if (first.startsWith('- ')) {
    return (
      <ul key={block}>
        {lines.map((line) => (
          <li key={line}>
            <Text>{line.slice(2)}</Text>
          </li>
        ))}
      </ul>
    );
  }
  if (first.startsWith('|')) {
    const [columns = [], , ...rows] = lines.map((line) => line.split('|').slice(1, -1));
    const heading = all.slice(0, index).findLast((one) => one.startsWith('#')) ?? '';
    return (
      <Table
        key={block}
        label={heading.replace(/^#+ /, '')}
        columns={columns.map((cell) => cell.trim())}
        rows={rows.map((cells) => cells.map((cell) => <Text key={cell}>{cell.trim()}</Text>))}
      />
    );
  }
  return (
    <p key={block}>
      <Text>{block}</Text>
    </p>
  );
}
