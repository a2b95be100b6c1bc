'use client';

import type { ComponentProps, ReactNode } from 'react';
import { type TextKey, t } from '../texts';
import { PageTitle } from './page-title';
import { SiteHeader } from './site-header';

/** A page with the header, and a heading that is the title of the window too. */
export function Page(
  props: Pick<ComponentProps<typeof SiteHeader>, 'here'> & {
    name: TextKey;
    /** What else stands in the header. */
    header?: ReactNode;
    /** Of the main part. Default: a page that is one text. */
    className?: string;
    children: ReactNode;
  },
) {
  const { here, name, header, className = 'terms', children, ...main } = props;
  return (
    <>
      <PageTitle name={name} />
      <SiteHeader here={here}>{header}</SiteHeader>
      <main
        {...main}
        id="main"
        tabIndex={-1}
        className={['stack', 'page-width', 'gap-16', className].join(' ')}
      >
        <h1>{t(name)}</h1>
        {children}
      </main>
    </>
  );
}
