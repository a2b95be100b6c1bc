import { PageTitle } from '../shared/page-title';
import { ModelsPage } from './models-page';

export default function Page() {
  return (
    <>
      <PageTitle name="common.models" />
      <ModelsPage />
    </>
  );
}
