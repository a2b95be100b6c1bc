import type { ReactNode } from 'react';

function Icon({ children }: { children: ReactNode }) {
  return (
    <svg className="glyph" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      {children}
    </svg>
  );
}

export function DiceIcon() {
  return (
    <Icon>
      <rect x="4" y="4" width="16" height="16" rx="4" />
      <path d="M9 9h.01M15 9h.01M12 12h.01M9 15h.01M15 15h.01" />
    </Icon>
  );
}

export function ImageIcon() {
  return (
    <Icon>
      <rect x="3" y="5" width="18" height="14" rx="3" />
      <path d="m4 17 5-5 4 4 3-3 4 4M15.5 9.5h.01" />
    </Icon>
  );
}

export function StarIcon() {
  return (
    <Icon>
      <path d="m12 4 2.4 5 5.6.7-4.1 3.8 1 5.5-4.9-2.7L7.1 19l1-5.5L4 9.7 9.6 9Z" />
    </Icon>
  );
}

export function CloseIcon() {
  return (
    <Icon>
      <path d="m6 6 12 12M18 6 6 18" />
    </Icon>
  );
}

export function ExpandIcon() {
  return (
    <Icon>
      <path d="M14 5h5v5M19 5l-6 6M10 19H5v-5M5 19l6-6" />
    </Icon>
  );
}

export function ArrowIcon({ up }: { up: boolean }) {
  return (
    <Icon>
      <path d={up ? 'm6 14 6-6 6 6' : 'm6 10 6 6 6-6'} />
    </Icon>
  );
}

/** The logo. */
export function Mark() {
  return (
    <svg className="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" />
      <path d="M11 8v16M11 17l9.5-9M13.8 14.6 21 24" />
    </svg>
  );
}

/** An `<img>` for blob URLs and small files, which `next/image` does not support or improve. */
export function Picture(props: { src: string; alt: string; width?: number; height?: number }) {
  const { alt, ...rest } = props;
  // biome-ignore lint/performance/noImgElement: next/image cannot read blobs of the page
  return <img alt={alt} {...rest} />;
}
