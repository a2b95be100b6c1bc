import { PageTitle } from '../shared/page-title';
import { HelpPage } from './help-page';

export default function Page() {
  return (
    <>
      <PageTitle name="common.help" />
      <HelpPage />
    </>
  );
}
