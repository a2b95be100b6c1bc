'use client';

import { useEffect, useRef } from 'react';
import { mountHeadless } from './mount';

/** The bare page of a server, for `npm run worker`: what it stores belongs to the address of that server. */
export function HeadlessPage() {
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    if (main.current) mountHeadless(main.current);
  }, []);
  return <main ref={main} />;
}
