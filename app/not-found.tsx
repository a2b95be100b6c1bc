import { NotFoundPage } from './shared/not-found-page';
import { PageTitle } from './shared/page-title';

export default function NotFound() {
  return (
    <>
      <PageTitle name="common.notFound" />
      <NotFoundPage />
    </>
  );
}
