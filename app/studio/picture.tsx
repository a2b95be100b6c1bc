/** An image as it is: blobs of this page and small files, nothing for an optimiser to fetch. */
export function Picture(props: { src: string; alt: string; width?: number; height?: number }) {
  const { alt, ...rest } = props;
  // biome-ignore lint/performance/noImgElement: next/image cannot read blobs of the page
  return <img alt={alt} {...rest} />;
}
