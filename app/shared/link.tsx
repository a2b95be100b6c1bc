import NextLink from 'next/link';
import type { ComponentProps, ReactNode } from 'react';

/** A link to another page of the app. It does not prefetch: browsers warn of prefetched files that are not used. */
export function Link(props: ComponentProps<typeof NextLink>) {
  return <NextLink prefetch={false} {...props} />;
}

/** A tag of a text that becomes such a link. */
export const linkTo = (href: string) => (name: ReactNode) => <Link href={href}>{name}</Link>;
