/** One row of the audit log: who, from where, why, and what was there before. */
import { Stack, Text, Title } from '@mantine/core';
import type { ParseKeys } from 'i18next';
import { useTranslation } from 'react-i18next';
import { FactList } from '../../../parts/fact-list.tsx';
import { localDecimals } from '../../../parts/format.ts';
import { Money } from '../../../parts/money.tsx';
import { Time } from '../../../parts/time.tsx';
import { Differences } from '../config/differences.tsx';
import { Loaded, useAnswer } from '../parts/load.tsx';
import { AccountLink, RowLink } from '../parts/names.tsx';
import type { AuditRow, ConfigDifference } from '../sale-types.ts';
import { ResultText, Subject } from './subject.tsx';

export function AuditEntry({ of: row }: { readonly of: AuditRow }) {
  const { t } = useTranslation();
  return (
    <Stack>
      <FactList
        facts={[
          [t('shell.word.time'), <Time key="at" at={row.at} />],
          [t('operator.people.audit.actor'), <Actor key="actor" of={row} />],
          [t('operator.people.audit.address'), row.address === '' ? '–' : row.address],
          [t('operator.people.audit.subject'), <Subject key="subject" of={row} whole />],
          [
            t('operator.column.reason'),
            <Text key="reason" fz="sm" className="wrap-any">
              {row.reason ?? '–'}
            </Text>,
          ],
          [t('shell.word.result'), <ResultText key="result" result={row.result} />],
        ]}
      />
      {row.changes.length > 0 && <Changes of={row} />}
      {row.configVersion !== null && row.configVersion > 1 && <ConfigChange version={row.configVersion} />}
      {row.changes.length === 0 && row.configVersion === null && (
        <Text fz="sm" c="dimmed">
          {t('operator.people.audit.noValues')}
        </Text>
      )}
    </Stack>
  );
}

function Actor({ of: { actor, actorKind, role } }: { readonly of: AuditRow }) {
  const { t } = useTranslation();
  const name =
    actorKind === 'token' ? (
      <RowLink to="/admin/tokens">{actor}</RowLink>
    ) : (
      <RowLink to="/admin/people" search={{ text: actor }}>
        {actor}
      </RowLink>
    );
  return (
    <span className="wrap-any">
      {actorKind === null ? actor : name}{' '}
      <Text span fz="xs" c="dimmed">
        {actorKind === 'token' ? t('operator.people.audit.byToken') : t(`operator.people.people.role.${role}`)}
      </Text>
    </span>
  );
}

function Changes({ of: { changes } }: { readonly of: AuditRow }) {
  const { t } = useTranslation();
  const facts = changes.map(({ field, before, after }) => {
    const label = Object.hasOwn(words, field) ? t(words[field]!) : field;
    const set = <Value key="after" field={field} of={after} />;
    if (before === null) return [label, set] as const;
    const both = (
      <span key="both" className="wrap-any">
        <Value field={field} of={before} /> → {set}
      </span>
    );
    return [label, both] as const;
  });
  return (
    <div>
      <Title order={3} fz="sm" fw={550} mb={4}>
        {t('operator.people.audit.changes')}
      </Title>
      <FactList facts={facts} />
    </div>
  );
}

/** Fields that pages have words for; others stand as the API names them. */
const words: Readonly<Record<string, ParseKeys>> = {
  accountId: 'shell.word.account',
  addresses: 'client.keys.addresses',
  amount: 'shell.word.amount',
  blocked: 'operator.people.people.blocked',
  cap: 'client.keys.cap',
  count: 'operator.sales.codes.count',
  disabled: 'operator.people.accounts.disabled',
  expiresAt: 'client.keys.expires',
  gift: 'operator.sales.codes.gift',
  images: 'client.keys.images',
  keys: 'shell.word.keys',
  limits: 'client.keys.limits',
  maxUses: 'operator.sales.codes.maxUses',
  models: 'shell.word.models',
  multiplier: 'operator.people.accounts.changeMultiplier',
  mutedUntil: 'operator.alerts.muteEnd',
  name: 'shell.word.name',
  oncePerAccount: 'operator.sales.codes.once',
  plan: 'shell.word.plan',
  planEndsAt: 'operator.people.accounts.planEnds',
  project: 'shell.word.project',
  role: 'operator.people.audit.role',
  tags: 'client.keys.tags',
};

const roles = ['client', 'auditor', 'operator'] as const;

function Value({ field, of: value }: { readonly field: string; readonly of: string | null }) {
  const { t, i18n } = useTranslation();
  if (value === null) return '–';
  if (field === 'accountId') return <AccountLink id={value} />;
  if (field === 'amount') return <Money of={value} exact />;
  if (field === 'multiplier') return localDecimals(value, i18n.language);
  if (/(At|Until)$/.test(field)) return <Time at={value} />;
  if (value === 'true' || value === 'false') return t(value === 'true' ? 'shell.yes' : 'shell.no');
  const role = field === 'role' ? roles.find((name) => name === value) : undefined;
  return role === undefined ? <span className="wrap-any">{value}</span> : t(`operator.people.people.role.${role}`);
}

/** What a change of the configuration changed, while both of its versions are kept. */
function ConfigChange({ version }: { readonly version: number }) {
  const answer = useAnswer<ConfigDifference>('/admin/config/history/difference', { from: version - 1, to: version });
  return <Loaded of={answer}>{({ files }) => <Differences files={files} />}</Loaded>;
}
