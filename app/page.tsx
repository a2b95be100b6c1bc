import { Studio } from './studio/studio';

export default function Page() {
  return <Studio />;
}
