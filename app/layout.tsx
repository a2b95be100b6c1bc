import type { Metadata, Viewport } from 'next';
import type { ReactNode } from 'react';
import './primitives.css';
import './globals.css';
// Styles of all pages, as browsers warn of those that a page preloads which is left before it uses them.
import './pages.css';
import './studio/studio.css';
import { imageScript } from './shared/expected-image';
import { Footer } from './shared/footer';
import { installScript } from './shared/install-offer';
import { TermsDialog } from './shared/terms-dialog';
import { frameColors, themeScript } from './shared/theme-script';
import { LanguageRoot } from './texts/language-root';

export const metadata: Metadata = {
  description: 'One still image and a prompt become a 720p video, on your own GPU, in the browser.',
};

export const viewport: Viewport = {
  colorScheme: 'light dark',
  themeColor: [
    { media: '(prefers-color-scheme: light)', color: frameColors.light },
    { media: '(prefers-color-scheme: dark)', color: frameColors.dark },
  ],
};

/** Runs before the first paint. */
const headScript = [themeScript, imageScript, installScript].join('\n');

export default function RootLayout({ children }: { children: ReactNode }) {
  return (
    // The script changes this element before React sees it.
    <html lang="en" suppressHydrationWarning>
      <head>
        {/* biome-ignore lint/security/noDangerouslySetInnerHtml: Constants of ours, which must run before the first paint. */}
        <script dangerouslySetInnerHTML={{ __html: headScript }} />
      </head>
      <body>
        <LanguageRoot>
          {children}
          <Footer />
          <TermsDialog />
        </LanguageRoot>
      </body>
    </html>
  );
}
