/** Filters that live in the address bar, so that a view can be kept, sent and gone back to. */
import { useNavigate, useSearch } from '@tanstack/react-router';

export type SearchState = Readonly<Record<string, string | undefined>>;

/** All members are text. Changing any of them goes back to the first page of a list. */
export function useSearchState(): readonly [SearchState, (change: SearchState) => void] {
  const search = useSearch({ strict: false }) as SearchState;
  const navigate = useNavigate();
  const change = (wanted: SearchState) => {
    const next = { ...search, ...('after' in wanted ? {} : { after: undefined, page: undefined }), ...wanted };
    const given = Object.entries(next).filter(([, value]) => value !== undefined && value !== '');
    void navigate({ to: '.', search: Object.fromEntries(given), replace: !('after' in wanted) });
  };
  return [search, change];
}

/** `a=1&b=2` as members of text, in both directions: the address bar shows filters as people would write them. */
export const readSearch = (text: string): Record<string, string> => Object.fromEntries(new URLSearchParams(text));
export function writeSearch(search: Record<string, unknown>): string {
  const given = Object.entries(search).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text === '' ? '' : `?${text}`;
}
