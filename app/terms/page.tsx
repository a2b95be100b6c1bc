import type { Metadata } from 'next';
import { termsVersion } from '../../lib/contract/terms';
import { SiteHeader } from '../shared/site-header';
import { TermsText } from '../shared/terms-text';
import { Acceptance } from './acceptance';

export const metadata: Metadata = { title: 'Terms of use · Kinora' };

export default function Page() {
  return (
    <>
      <SiteHeader />
      <main id="main" tabIndex={-1} className="terms">
        <h1>Terms of use</h1>
        <article className="panel">
          <p className="field-hint">
            Version {termsVersion}. They are accepted once per device: before the first download of
            a model, before an API key is made, and before a tab serves. The demonstration model
            needs no acceptance. The acceptance is stored in this browser and sent nowhere; a key
            keeps the version that was accepted when it was made.
          </p>
          <TermsText level={2} />
          <Acceptance />
        </article>
      </main>
    </>
  );
}
