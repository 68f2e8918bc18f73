/** The rows of a long table that can be seen, between two gaps as high as the others. */
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { type ReactNode, useLayoutEffect, useRef, useState } from 'react';

const rowHeight = 41;

export default function VirtualRows({ children }: { readonly children: readonly ReactNode[] }) {
  const top = useRef<HTMLTableRowElement>(null);
  const [scrollMargin, setScrollMargin] = useState(0);
  useLayoutEffect(() => {
    setScrollMargin((top.current?.getBoundingClientRect().top ?? 0) + window.scrollY);
  }, []);
  const rows = useWindowVirtualizer({
    count: children.length,
    estimateSize: () => rowHeight,
    overscan: 20,
    scrollMargin,
  });
  const seen = rows.getVirtualItems();
  const before = (seen[0]?.start ?? scrollMargin) - scrollMargin;
  const after = rows.getTotalSize() - ((seen.at(-1)?.end ?? scrollMargin) - scrollMargin);
  return (
    <>
      <tr ref={top} className="table-gap" style={{ height: before }} aria-hidden />
      {seen.map(({ index }) => children[index])}
      <tr className="table-gap" style={{ height: Math.max(0, after) }} aria-hidden />
    </>
  );
}
