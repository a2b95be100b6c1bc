import type { Metadata, Viewport } from 'next';
import type { ReactNode } from 'react';
import './globals.css';
import { Footer } from './shared/footer';
import { TermsDialog } from './shared/terms-dialog';
import { LanguageRoot } from './texts/language-root';

export const metadata: Metadata = {
  title: 'Kinora',
  description: 'One still image and a prompt become a 720p video, on your own GPU, in the browser.',
};

export const viewport: Viewport = {
  colorScheme: 'light dark',
  themeColor: [
    { media: '(prefers-color-scheme: light)', color: '#faf8f5' },
    { media: '(prefers-color-scheme: dark)', color: '#151312' },
  ],
};

export default function RootLayout({ children }: { children: ReactNode }) {
  return (
    <html lang="en">
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
