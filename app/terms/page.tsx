import { PageTitle } from '../shared/page-title';
import { TermsPage } from './terms-page';

export default function Page() {
  return (
    <>
      <PageTitle name="common.termsOfUse" />
      <TermsPage />
    </>
  );
}
