/** Notices of the account: each kind with its threshold and channels, the webhook with its secret, a test, and what was sent. */
import { Box, Button, Checkbox, Group, NumberInput, Stack, Text, TextInput } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { ApiError, get, send } from '../../api/client.ts';
import type { NoticeChannel, NoticeKind, Notices as Settings } from '../../api/types.ts';
import { CopyButton } from '../../parts/copy-button.tsx';
import { faultWords } from '../../parts/delivery-fault.ts';
import { localDecimals, typedAmount } from '../../parts/format.ts';
import { Panel } from '../../parts/page.tsx';
import { noticeLanguage, SentNotices } from '../../parts/sent-notices.tsx';
import { ErrorState, useErrorText } from '../../parts/states.tsx';
import { useWork } from '../../parts/use-work.ts';

const channels = ['mail', 'webhook'] as const;

export function Notices() {
  const { t, i18n } = useTranslation();
  const queries = useQueryClient();
  const language = noticeLanguage(i18n.language);
  const key = ['notices', language];
  const notices = useQuery({ queryKey: key, queryFn: () => get<Settings>('/notices', { language }) });
  const change = async (body: object) =>
    queries.setQueryData(key, await send<Settings>('PATCH', '/notices', { language, ...body }));
  return (
    <Panel title={t('client.profile.notices.title')} hint={t('client.profile.notices.hint')}>
      {notices.isError && <ErrorState error={notices.error} onRetry={() => void notices.refetch()} />}
      {notices.data !== undefined && (
        <Stack gap="md">
          <Form settings={notices.data} change={change} />
          <Tests settings={notices.data} language={language} change={change} />
          <SentNotices rows={notices.data.last} />
        </Stack>
      )}
    </Panel>
  );
}

interface PartProps {
  readonly settings: Settings;
  readonly change: (body: object) => Promise<unknown>;
}

/** As the fields hold it: an amount as it is typed, percent, days. */
const typedOf = ({ unit, threshold }: NoticeKind, language: string): string => {
  if (threshold === null) return '';
  if (unit === 'share') return String(Math.round(Number(threshold) * 100));
  return unit === 'days' ? String(Number(threshold)) : localDecimals(threshold, language);
};
/** As the API has it. */
const thresholdOf = ({ unit }: NoticeKind, typed: string): string | null => {
  if (unit === 'none' || typed === '') return null;
  return unit === 'share' ? (Number(typed) / 100).toFixed(2) : typedAmount(typed);
};

/** What was changed and is not saved. */
function useDraft({ settings: { kinds }, change }: PartProps) {
  const { i18n } = useTranslation();
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>({});
  const [chosen, setChosen] = useState<Readonly<Record<string, readonly NoticeChannel[]>>>({});
  const [url, setUrl] = useState<string>();
  const shownOf = (kind: NoticeKind) => typed[kind.kind] ?? typedOf(kind, i18n.language);
  const channelsOf = (kind: NoticeKind) => chosen[kind.kind] ?? kind.channels;
  const changed = kinds.filter(({ kind }) => kind in typed || kind in chosen);
  const save = async () => {
    const rows = changed.map((kind) => ({
      kind: kind.kind,
      channels: channelsOf(kind),
      threshold: kind.kind in typed || kind.threshold !== kind.usual ? thresholdOf(kind, shownOf(kind)) : null,
    }));
    await change({ kinds: rows, ...(url === undefined ? {} : { url: url.trim() === '' ? null : url.trim() }) });
    setTyped({});
    setChosen({});
    setUrl(undefined);
  };
  return {
    ...{ shownOf, channelsOf, url, setUrl, save },
    isEmpty: changed.length === 0 && url === undefined,
    type: (kind: NoticeKind, value: string) => setTyped({ ...typed, [kind.kind]: value }),
    choose: (kind: NoticeKind, value: readonly NoticeChannel[]) => setChosen({ ...chosen, [kind.kind]: value }),
  };
}

/** Kinds and the address of the webhook, saved together. */
function Form({ settings, change }: PartProps) {
  const { t } = useTranslation();
  const draft = useDraft({ settings, change });
  const textOf = useErrorText();
  const { busy, problem, run } = useWork((error) => ({
    text: textOf(error),
    isAddress: error instanceof ApiError && error.field === 'url',
  }));
  return (
    <Stack gap="xs" align="flex-start">
      <Stack gap="xs" w="100%">
        {settings.kinds.map((kind) => (
          <Group key={kind.kind} gap="xs" justify="space-between">
            <Text fz="sm" className="grow" miw={200}>
              {kind.title}
            </Text>
            <Threshold kind={kind} value={draft.shownOf(kind)} onChange={(value) => draft.type(kind, value)} />
            <Choice
              kind={kind}
              sendsMail={settings.mail}
              value={draft.channelsOf(kind)}
              onChange={(value) => draft.choose(kind, value)}
            />
          </Group>
        ))}
      </Stack>
      <TextInput
        w="100%"
        label={t('client.profile.notices.address')}
        placeholder="https://"
        inputMode="url"
        value={draft.url ?? settings.webhook?.url ?? ''}
        error={problem?.isAddress === true && problem.text}
        onChange={({ currentTarget }) => draft.setUrl(currentTarget.value)}
      />
      {problem?.isAddress === false && (
        <Text fz="xs" c="red" role="alert">
          {problem.text}
        </Text>
      )}
      <Button variant="default" size="xs" disabled={draft.isEmpty} loading={busy} onClick={() => void run(draft.save)}>
        {t('client.profile.notices.save')}
      </Button>
    </Stack>
  );
}

interface FieldProps<Value> {
  readonly kind: NoticeKind;
  readonly value: Value;
  readonly onChange: (value: Value) => void;
}

function Threshold({ kind, value, onChange }: FieldProps<string>) {
  const { t } = useTranslation();
  const label = t('client.profile.notices.threshold', { kind: kind.title });
  if (kind.unit === 'none') return <Box w={110} visibleFrom="sm" />;
  if (kind.unit === 'usd')
    return (
      <TextInput
        size="xs"
        w={110}
        inputMode="decimal"
        aria-label={label}
        leftSection="$"
        value={value}
        onChange={({ currentTarget }) => onChange(currentTarget.value)}
      />
    );
  const isShare = kind.unit === 'share';
  const mostDays = kind.kind === 'key_age' ? 3_650 : 90;
  return (
    <NumberInput
      size="xs"
      w={110}
      aria-label={label}
      min={1}
      max={isShare ? 100 : mostDays}
      allowDecimal={!isShare}
      suffix={isShare ? ' %' : ` ${t('client.profile.notices.days')}`}
      value={value}
      onChange={(next) => onChange(String(next))}
    />
  );
}

function Choice({
  kind,
  value,
  onChange,
  sendsMail,
}: FieldProps<readonly NoticeChannel[]> & { readonly sendsMail: boolean }) {
  const { t } = useTranslation();
  return (
    <Group gap="md" wrap="nowrap">
      {channels.map((channel) => (
        <Checkbox
          key={channel}
          size="xs"
          label={t(`client.profile.notices.${channel}`)}
          aria-label={`${kind.title}: ${t(`client.profile.notices.${channel}`)}`}
          disabled={channel === 'mail' && !sendsMail}
          checked={value.includes(channel)}
          onChange={({ currentTarget: { checked } }) =>
            onChange(channels.filter((one) => (one === channel ? checked : value.includes(one))))
          }
        />
      ))}
    </Group>
  );
}

function Tests({ settings: { mail, webhook }, language, change }: PartProps & { readonly language: string }) {
  const { t } = useTranslation();
  const textOf = useErrorText();
  const [result, setResult] = useState<string>();
  const { busy, problem, run } = useWork(textOf);
  const test = (channel: NoticeChannel) =>
    run(async () => {
      const { fault } = await send<{ fault: string | null }>('POST', '/notices/test', { channel, language });
      setResult(fault === null ? t('client.profile.notices.taken') : faultWords(fault, t));
    });
  const tested = [...(mail ? (['mail'] as const) : []), ...(webhook === null ? [] : (['webhook'] as const))];
  return (
    <Stack gap="xs">
      {webhook !== null && (
        <Group gap="xs">
          <Text fz="sm">{t('client.profile.notices.secret')}</Text>
          <CopyButton text={webhook.secret} wide />
          <Button size="xs" variant="default" onClick={() => void run(() => change({ newSecret: true }))}>
            {t('client.profile.notices.newSecret')}
          </Button>
        </Group>
      )}
      <Group gap="xs">
        {tested.map((channel) => (
          <Button key={channel} size="xs" variant="default" loading={busy} onClick={() => void test(channel)}>
            {t('client.profile.notices.test', { channel: t(`client.profile.notices.${channel}`) })}
          </Button>
        ))}
        <Text fz="sm" role="status">
          {problem ?? result}
        </Text>
      </Group>
    </Stack>
  );
}
