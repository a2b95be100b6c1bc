import type { ReactNode } from 'react';
import { hasServer } from './server';
import { SiteHeader } from './site-header';

type Here = NonNullable<Parameters<typeof SiteHeader>[0]['here']>;

/** A page that works with the API's server only; in a copy of the app without one, it says so. */
export function NeedsServer(props: { here: Here; title: string; children: ReactNode }) {
  if (hasServer) return props.children;
  return (
    <>
      <SiteHeader here={props.here} />
      <main id="main" tabIndex={-1} className="terms">
        <h1>{props.title}</h1>
        <p className="panel">
          This needs Kinora’s server, and this copy of the app has none. Start it with{' '}
          <code>npm start</code> and open the app there. The studio, your models and your videos
          need no server.
        </p>
      </main>
    </>
  );
}
