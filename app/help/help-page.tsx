'use client';

import Link from 'next/link';
import type { ReactNode } from 'react';
import { SiteHeader } from '../shared/site-header';
import { type TextKey, t } from '../texts';
import '../texts/en/help';
import help from '../texts/en/help.json';

const { contents: _, ...catalogue } = help;
/** The sections in their order: the key is the anchor, and each text but the title is an item of a list. */
const sections = Object.entries(catalogue).map(([id, texts]) => ({
  id,
  title: `help.${id}.title` as TextKey,
  items: Object.keys(texts)
    .filter((name) => name !== 'title')
    .map((name) => `help.${id}.${name}` as TextKey),
}));

const linkTo = (href: string) => (name: ReactNode) => (
  <Link href={href} prefetch={false}>
    {name}
  </Link>
);

/** What the tags of the texts become. */
const tags = {
  b: (name: ReactNode) => <strong>{name}</strong>,
  code: (text: ReactNode) => <code>{text}</code>,
  studio: linkTo('/'),
  models: linkTo('/models'),
  serve: linkTo('/serve'),
  keys: linkTo('/keys'),
  docs: linkTo('/docs'),
  settings: linkTo('/settings'),
  terms: linkTo('/terms'),
};

/** How to use the app: one page, in the language of the page, with an anchor for each section. */
export function HelpPage() {
  return (
    <>
      <SiteHeader />
      <main id="main" tabIndex={-1} className="docs">
        <header className="docs-head">
          <h1>{t('common.help')}</h1>
        </header>
        <nav className="contents" aria-label={t('help.contents')}>
          <ol>
            {sections.map(({ id, title }) => (
              <li key={id}>
                <a href={`#${id}`}>{t(title)}</a>
              </li>
            ))}
          </ol>
        </nav>
        <article className="docs-text">
          {sections.map(({ id, title, items }, place) => {
            const List = place === 0 ? 'ol' : 'ul';
            return (
              <section key={id} aria-labelledby={id}>
                <h2 id={id}>{t(title)}</h2>
                <List className={place === 0 ? 'steps' : undefined}>
                  {items.map((item) => (
                    <li key={item}>{t.rich(item, tags)}</li>
                  ))}
                </List>
              </section>
            );
          })}
        </article>
      </main>
    </>
  );
}
