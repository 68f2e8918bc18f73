/** What a row of the audit log is about, and what came of it. */
import { useTranslation } from 'react-i18next';
import { Word } from '../parts/badges.tsx';
import { AccountLink, RequestLink, RowLink, shortId } from '../parts/names.tsx';
import type { AuditRow } from '../sale-types.ts';

interface SubjectProps {
  readonly of: AuditRow;
  /** With the whole of an id. */
  readonly whole?: boolean;
}

/** The changed object, as a link where it has a page. */
export function Subject({ of: { action, subject, configVersion }, whole = false }: SubjectProps) {
  if (configVersion !== null)
    return (
      <RowLink to="/admin/config" search={{ view: 'history', version: String(configVersion) }}>
        {subject}
      </RowLink>
    );
  if (/^account\.(?!key|rename)/.test(action)) return <AccountLink id={subject} />;
  if (action.startsWith('request.')) return <RequestLink id={subject} />;
  if (/^(person|member)\./.test(action))
    return (
      <RowLink to="/admin/people" search={{ text: subject }}>
        {subject}
      </RowLink>
    );
  return (
    <span title={subject} className="wrap-any">
      {!whole && /^[0-9a-f-]{36}$/.test(subject) ? shortId(subject) : subject}
    </span>
  );
}

export function ResultText({ result }: { readonly result: string }) {
  const { t } = useTranslation();
  if (result === 'done') return <Word color="teal">{t('operator.people.audit.done')}</Word>;
  if (result === 'begun') return <Word color="yellow">{t('operator.people.audit.begun')}</Word>;
  return <Word color="red">{result}</Word>;
}
