/** Renders a part of a page when it is about to be seen, so that its code and its data are not fetched before. */
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { Waiting } from './states.tsx';

interface OnSightProps {
  /** Height of the content to come. */
  readonly height: number;
  readonly children: ReactNode;
}

export function OnSight({ height, children }: OnSightProps) {
  const place = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    if (seen || place.current === null) return;
    const watcher = new IntersectionObserver((entries) => setSeen(entries.some((entry) => entry.isIntersecting)), {
      rootMargin: '120px',
    });
    watcher.observe(place.current);
    return () => watcher.disconnect();
  }, [seen]);
  if (seen) return <>{children}</>;
  return (
    <div ref={place}>
      <Waiting height={height} />
    </div>
  );
}
