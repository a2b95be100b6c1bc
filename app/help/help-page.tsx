'use client';

import { type ReactNode, useEffect, useState } from 'react';
import { flushSync } from 'react-dom';
import { appPath } from '../../lib/contract';
import { useWindowEvent } from '../shared/browser';
import { Picture } from '../shared/icons';
import { linkTo } from '../shared/link';
import { PageTitle } from '../shared/page-title';
import { SiteHeader } from '../shared/site-header';
import { type TextKey, t } from '../texts';
import '../texts/en/help';
import help from '../texts/en/help.json';
import { errorsAt } from './error-places';

const { contents: _, search: __, found: ___, ...catalogue } = help;
/** The sections in their order. A part has an id of its own, and a heading where its text has a title. */
const sections = Object.entries(catalogue).map(([id, { title: _, ...texts }]) => ({
  id,
  title: `help.${id}.title` as TextKey,
  parts: Object.entries(texts).map(([name, text]) => {
    const key = `help.${id}.${name}`;
    // The build makes arrays of texts with tags.
    const titled = typeof text === 'object' && 'title' in text;
    const [title, body] = titled ? [`${key}.title`, `${key}.text`] : [null, key];
    return { id: `${id}-${name}`, title: title as TextKey | null, text: body as TextKey };
  }),
}));
type Part = (typeof sections)[number]['parts'][number];

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

const plain = (words: ReactNode) => words;
const plainTags = Object.fromEntries(Object.keys(tags).map((tag) => [tag, plain]));

/** The sections with the answers that have all words of a search in them or in their headings. */
function find(search: string): typeof sections {
  const words = search.toLowerCase().split(/\s+/);
  const found = sections.map((section) => ({
    ...section,
    parts: section.parts.filter((part) => {
      const titles = [section.title, part.title].map((title) => title && t(title));
      const text = [titles, t.rich(part.text, plainTags)].flat(9).join(' ').toLowerCase();
      return words.every((word) => text.includes(word));
    }),
  }));
  return found.filter(({ parts }) => parts.length > 0);
}

/** The anchors of the errors that a part explains: `/help#DEVICE_LOST`. */
function Anchors({ of }: { of: Part }) {
  return errorsAt(of.id).map((code) => <span key={code} id={code} className="anchor" />);
}

/** One answer: an item of a list. */
function Item({ part }: { part: Part }) {
  return (
    <li id={part.id}>
      <Anchors of={part} />
      {t.rich(part.text, tags)}
    </li>
  );
}

/** Values of a setting, each with the last frame of a video of the bundled model (public/samples/README.md). */
const pictures: Readonly<Record<string, readonly string[]>> = {
  'settings-steps': ['1', '3', '8'],
  'settings-guidance': ['1', '2', '6', '10'],
};

/** What a setting does to one video. */
function Pictures({ of, title }: { of: Part; title: TextKey }) {
  const values = pictures[of.id];
  if (!values) return null;
  return (
    <ul className="help-pictures flex gap-8 wrap mt-8">
      {values.map((value) => (
        <li key={value}>
          <figure>
            <Picture
              src={appPath(`/samples/${of.id.replace('-', '/')}-${value}.jpg`)}
              alt={`${t(title)} ${value}`}
              width={320}
              height={180}
            />
            <figcaption className="muted text-m" aria-hidden="true">
              {value}
            </figcaption>
          </figure>
        </li>
      ))}
    </ul>
  );
}

/** One answer with a heading. */
function Topic({ part, title }: { part: Part; title: TextKey }) {
  return (
    <div className="topic stack gap-2">
      <h3 id={part.id}>
        <Anchors of={part} />
        {t(title)}
      </h3>
      <p>{t.rich(part.text, tags)}</p>
      <Pictures of={part} title={title} />
    </div>
  );
}

const placeOfAddress = () => document.getElementById(location.hash.slice(1));
/** Returns nothing, as an effect has to: browsers of 2026 return a promise from `scrollIntoView`. */
function showPlace(): void {
  placeOfAddress()?.scrollIntoView();
}

/** How to use the app: one page, in the language of the page, with an anchor for each answer and each error. */
export function HelpPage() {
  const [search, setSearch] = useState('');
  const found = find(search);
  const count = found.reduce((sum, { parts }) => sum + parts.length, 0);
  // In another language than English the page is rendered anew, below where the browser has scrolled to.
  useEffect(showPlace, []);
  useWindowEvent('hashchange', () => {
    // A search may have left it out.
    if (!placeOfAddress()) flushSync(() => setSearch(''));
    showPlace();
  });
  return (
    <>
      <PageTitle name="common.help" />
      <SiteHeader />
      <main id="main" tabIndex={-1} className="docs stack page-width gap-0 help">
        <header className="docs-head stack gap-14 prose">
          <h1>{t('common.help')}</h1>
          <search>
            <input
              type="search"
              aria-label={t('help.search')}
              placeholder={t('help.search')}
              value={search}
              onChange={(event) => setSearch(event.target.value)}
            />
          </search>
          <p className="field-hint" role="status">
            {search.trim() !== '' && t('help.found', { count })}
          </p>
        </header>
        <nav className="contents" aria-label={t('help.contents')}>
          <ol>
            {found.map(({ id, title }) => (
              <li key={id}>
                <a href={`#${id}`}>{t(title)}</a>
              </li>
            ))}
          </ol>
        </nav>
        <article className="docs-text min-0">
          {found.map(({ id, title, parts }) => {
            const isFirst = id === sections[0]?.id;
            const List = isFirst ? 'ol' : 'ul';
            const items = parts.filter((part) => part.title === null);
            return (
              <section key={id} aria-labelledby={id}>
                <h2 id={id}>{t(title)}</h2>
                {items.length > 0 && (
                  <List className={isFirst ? 'steps' : undefined}>
                    {items.map((part) => (
                      <Item key={part.id} part={part} />
                    ))}
                  </List>
                )}
                {parts.map(
                  (part) => part.title && <Topic key={part.id} part={part} title={part.title} />,
                )}
              </section>
            );
          })}
        </article>
      </main>
    </>
  );
}
