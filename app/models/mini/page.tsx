import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Metadata } from 'next';
import type { ReactNode } from 'react';
import { Prose } from '../../docs/api/fields';
import { Table, Text } from '../../docs/parts';
import { SiteHeader } from '../../shared/site-header';

export const metadata: Metadata = { title: 'Mini · Kinora' };
/** The page is rendered when the app is built. */
export const dynamic = 'force-static';

const card = path.join(process.cwd(), 'public', 'models', 'mini', 'README.md');

/** The model card of the demonstration model: the README beside its weights. */
export default async function Page() {
  const sections = (await readFile(card, 'utf8')).trim().split(/\n(?=## )/);
  return (
    <>
      <SiteHeader here="/models" />
      <main id="main" tabIndex={-1} className="docs stack page-width gap-0" lang="en">
        <article className="docs-text min-0">
          {sections.map((text) => {
            const [heading = '', ...blocks] = text.trim().split(/\n{2,}/);
            const title = heading.replace(/^#+ /, '');
            return (
              <section key={title}>
                {heading.startsWith('## ') ? <h2>{title}</h2> : <h1>{title}</h1>}
                {blocks.map((block) => showBlock(block, title))}
              </section>
            );
          })}
        </article>
      </main>
    </>
  );
}

/** A list, table or paragraph: what of Markdown the card has. */
function showBlock(block: string, title: string): ReactNode {
  const lines = block.split('\n');
  if (block.startsWith('|')) {
    const [columns = [], , ...rows] = lines.map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
    const cells = rows.map((row) => row.map((cell) => <Text key={cell}>{cell}</Text>));
    return <Table key={block} label={title} columns={columns} rows={cells} />;
  }
  return <Prose key={block} text={block} />;
}
