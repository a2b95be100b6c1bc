import { PageTitle } from './shared/page-title';
import { Studio } from './studio/studio';

export default function Page() {
  return (
    <>
      <PageTitle />
      <Studio />
    </>
  );
}
