/** The licence with its text, where there is an address of it. */
export function Licence({ name, url }: { name: string; url?: string | undefined }) {
  if (!url) return <>{name}</>;
  return (
    <a href={url} target="_blank" rel="noreferrer">
      {name}
    </a>
  );
}
