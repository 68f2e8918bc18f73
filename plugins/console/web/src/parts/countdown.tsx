/** How long it is until a moment, counted down while one looks. */
import { useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Moment } from '../api/types.ts';
import { countdownText } from './format.ts';

export function Countdown({ to }: { readonly to: Moment }) {
  const { i18n } = useTranslation();
  const end = new Date(to).getTime();
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return <span className="number">{countdownText(end - now, i18n.language)}</span>;
}
