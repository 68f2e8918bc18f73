/** The kinds of notices that every gateway has, and what they say in each language. */
import type { NoticeFields, NoticeKind, NoticeLanguage } from '../common/domain/admin/notices.ts';
import { parseUsd } from '../common/domain/money.ts';

type ByLanguage<Value> = Readonly<Record<NoticeLanguage, Value>>;
type Line = (fields: NoticeFields) => string;
interface Words {
  readonly title: ByLanguage<string>;
  readonly line: ByLanguage<Line>;
}

export const testTexts: ByLanguage<{ readonly title: string; readonly text: string }> = {
  en: { title: 'A test notice', text: 'Notices of your account arrive here.' },
  de: { title: 'Eine Testmitteilung', text: 'Mitteilungen Ihres Kontos kommen hier an.' },
  ja: { title: 'テスト通知', text: 'アカウントの通知はここに届きます。' },
  zh: { title: '测试通知', text: '您账户的通知会发送到这里。' },
};

/** `2026-12-01 10:00 UTC`, of ISO 8601. */
const time = (iso = '') => `${iso.slice(0, 16).replace('T', ' ')} UTC`;

const lowBalance: Words = {
  title: { en: 'Low balance', de: 'Niedriges Guthaben', ja: '残高が少なくなっています', zh: '余额不足' },
  line: {
    en: ({ balance }) => `The balance of your account is $${balance}.`,
    de: ({ balance }) => `Das Guthaben Ihres Kontos beträgt ${balance} $.`,
    ja: ({ balance }) => `アカウントの残高は $${balance} です。`,
    zh: ({ balance }) => `您的账户余额为 $${balance}。`,
  },
};

const everyWords: ByLanguage<Readonly<Record<string, string>>> = {
  en: {
    day: 'today',
    week: 'this week',
    month: 'this month',
    quarter: 'this quarter',
    year: 'this year',
    ever: 'in total',
  },
  de: {
    ...{
      day: 'heute',
      week: 'diese Woche',
      month: 'diesen Monat',
      quarter: 'in diesem Quartal',
      year: 'in diesem Jahr',
    },
    ever: 'insgesamt',
  },
  ja: { day: '今日', week: '今週', month: '今月', quarter: '今四半期', year: '今年', ever: '合計' },
  zh: { day: '今日', week: '本周', month: '本月', quarter: '本季度', year: '今年', ever: '累计' },
};
const every = (language: NoticeLanguage, name = '') => everyWords[language][name] ?? name;

const capShare: Words = {
  title: {
    en: 'A key nears its spend cap',
    de: 'Ein Schlüssel nähert sich seiner Ausgabengrenze',
    ja: 'キーが利用上限に近づいています',
    zh: '密钥接近支出上限',
  },
  line: {
    en: ({ key, spent, limit, period }) => `The key "${key}" has spent $${spent} of $${limit} ${every('en', period)}.`,
    de: ({ key, spent, limit, period }) =>
      `Der Schlüssel „${key}“ hat ${every('de', period)} ${spent} $ von ${limit} $ ausgegeben.`,
    ja: ({ key, spent, limit, period }) =>
      `キー「${key}」の利用額（${every('ja', period)}）は $${limit} のうち $${spent} です。`,
    zh: ({ key, spent, limit, period }) => `密钥“${key}”${every('zh', period)}已支出 $${spent}，上限为 $${limit}。`,
  },
};

const budgetWords: ByLanguage<Readonly<Record<string, string>>> = {
  en: {
    account: 'the account',
    project: 'a project',
    person: 'a person',
    key: 'a key',
    models: 'models',
    tag: 'the tag',
  },
  de: {
    account: 'das Konto',
    project: 'ein Projekt',
    person: 'eine Person',
    key: 'einen Schlüssel',
    models: 'Modelle',
    tag: 'das Tag',
  },
  ja: {
    account: 'アカウント',
    project: 'プロジェクト',
    person: 'ユーザー',
    key: 'キー',
    models: 'モデル',
    tag: 'タグ',
  },
  zh: { account: '账户', project: '项目', person: '个人', key: '密钥', models: '模型', tag: '标签' },
};
const budgetName = (language: NoticeLanguage, { of = '', models, tag, name }: NoticeFields) =>
  [budgetWords[language][of] ?? of, name ?? models ?? tag].filter((word) => word !== undefined).join(' ');

const budgetShare: Words = {
  title: {
    en: 'A budget has been spent to a share of it',
    de: 'Ein Budget ist zu einem Teil ausgegeben',
    ja: '予算の一定割合に達しました',
    zh: '预算支出已达设定比例',
  },
  line: {
    en: (all) =>
      `The budget for ${budgetName('en', all)} has $${all['spent']} of $${all['limit']} spent ${every('en', all['period'])}.`,
    de: (all) =>
      `Vom Budget für ${budgetName('de', all)} sind ${every('de', all['period'])} ${all['spent']} $ von ${all['limit']} $ ausgegeben.`,
    ja: (all) =>
      `${budgetName('ja', all)}の予算（${every('ja', all['period'])}）は $${all['limit']} のうち $${all['spent']} を利用しました。`,
    zh: (all) =>
      `${budgetName('zh', all)}的预算${every('zh', all['period'])}已支出 $${all['spent']}，上限为 $${all['limit']}。`,
  },
};

const creditOverdue: Words = {
  title: {
    en: 'A payment is overdue',
    de: 'Eine Zahlung ist überfällig',
    ja: 'お支払い期限を過ぎています',
    zh: '有款项已逾期',
  },
  line: {
    en: ({ month, due, due_at: dueAt }) => `$${due} for ${month} was to be paid by ${time(dueAt)}.`,
    de: ({ month, due, due_at: dueAt }) => `${due} $ für ${month} waren bis ${time(dueAt)} zu zahlen.`,
    ja: ({ month, due, due_at: dueAt }) => `${month} のご利用分 $${due} のお支払い期限は ${time(dueAt)} でした。`,
    zh: ({ month, due, due_at: dueAt }) => `${month} 的用量 $${due} 应在 ${time(dueAt)} 前付清。`,
  },
};

const windowWords: ByLanguage<Readonly<Record<string, string>>> = {
  en: { '5h': 'five hours', day: 'day', week: 'week', month: 'month' },
  de: { '5h': 'fünf Stunden', day: 'Tag', week: 'Woche', month: 'Monat' },
  ja: { '5h': '5時間', day: '1日', week: '1週間', month: '1か月' },
  zh: { '5h': '5 小时', day: '一天', week: '一周', month: '一个月' },
};
const windowName = (language: NoticeLanguage, name = '') => windowWords[language][name] ?? name;

const windowShare: Words = {
  title: {
    en: 'A window of your plan is nearly used up',
    de: 'Ein Zeitfenster Ihres Tarifs ist fast aufgebraucht',
    ja: 'プランの利用枠が残りわずかです',
    zh: '套餐的时间窗口即将用尽',
  },
  line: {
    en: ({ window, spent, limit, ends_at: endsAt }) =>
      `$${spent} of $${limit} is used in the window of ${windowName('en', window)}, which ends ${time(endsAt)}.`,
    de: ({ window, spent, limit, ends_at: endsAt }) =>
      `${spent} $ von ${limit} $ sind im Fenster (${windowName('de', window)}) verbraucht; es endet ${time(endsAt)}.`,
    ja: ({ window, spent, limit, ends_at: endsAt }) =>
      `${windowName('ja', window)}の枠で $${limit} のうち $${spent} を利用しました。枠の終了は ${time(endsAt)} です。`,
    zh: ({ window, spent, limit, ends_at: endsAt }) =>
      `${windowName('zh', window)}窗口已使用 $${spent}，限额 $${limit}，窗口于 ${time(endsAt)} 结束。`,
  },
};

const planEnd: Words = {
  title: {
    en: 'Your plan ends soon',
    de: 'Ihr Tarif endet bald',
    ja: 'プランがまもなく終了します',
    zh: '套餐即将到期',
  },
  line: {
    en: ({ plan, ends_at: endsAt, renews }) =>
      `The plan "${plan}" ends ${time(endsAt)}.${renews === 'true' ? ' It is renewed then if the balance covers its price.' : ''}`,
    de: ({ plan, ends_at: endsAt, renews }) =>
      `Der Tarif „${plan}“ endet ${time(endsAt)}.${renews === 'true' ? ' Er wird dann verlängert, wenn das Guthaben für den Preis reicht.' : ''}`,
    ja: ({ plan, ends_at: endsAt, renews }) =>
      `プラン「${plan}」は ${time(endsAt)} に終了します。${renews === 'true' ? '残高が料金に足りていれば更新されます。' : ''}`,
    zh: ({ plan, ends_at: endsAt, renews }) =>
      `套餐“${plan}”将于 ${time(endsAt)} 到期。${renews === 'true' ? '余额足够时将自动续订。' : ''}`,
  },
};

const keyExpiry: Words = {
  title: {
    en: 'A key expires soon',
    de: 'Ein Schlüssel läuft bald ab',
    ja: 'キーの有効期限が近づいています',
    zh: '密钥即将过期',
  },
  line: {
    en: ({ key, prefix, ends_at: endsAt }) => `The key "${key}" (${prefix}…) expires ${time(endsAt)}.`,
    de: ({ key, prefix, ends_at: endsAt }) => `Der Schlüssel „${key}“ (${prefix}…) läuft ${time(endsAt)} ab.`,
    ja: ({ key, prefix, ends_at: endsAt }) => `キー「${key}」（${prefix}…）は ${time(endsAt)} に失効します。`,
    zh: ({ key, prefix, ends_at: endsAt }) => `密钥“${key}”（${prefix}…）将于 ${time(endsAt)} 过期。`,
  },
};

const keyAge: Words = {
  title: {
    en: 'A key is old',
    de: 'Ein Schlüssel ist alt',
    ja: 'キーが古くなっています',
    zh: '密钥使用已久',
  },
  line: {
    en: ({ key, prefix, since }) => `The key "${key}" (${prefix}…) has its secret since ${time(since)}: rotate it.`,
    de: ({ key, prefix, since }) =>
      `Der Schlüssel „${key}“ (${prefix}…) hat sein Geheimnis seit ${time(since)}: erneuern Sie es.`,
    ja: ({ key, prefix, since }) =>
      `キー「${key}」（${prefix}…）のシークレットは ${time(since)} から使われています。更新してください。`,
    zh: ({ key, prefix, since }) => `密钥“${key}”（${prefix}…）的机密自 ${time(since)} 起使用，请轮换。`,
  },
};

const domainRecord: Words = {
  title: {
    en: 'The record of a domain is gone',
    de: 'Der Eintrag einer Domain fehlt',
    ja: 'ドメインのレコードが見つかりません',
    zh: '域名的验证记录已消失',
  },
  line: {
    en: ({ domain, ends_at: endsAt }) =>
      `DNS no longer has the record that verifies ${domain}. Put it back by ${time(endsAt)}, or the sign-in of your company takes no new people of it.`,
    de: ({ domain, ends_at: endsAt }) =>
      `Im DNS fehlt der Eintrag, der ${domain} bestätigt. Setzen Sie ihn bis ${time(endsAt)} wieder, sonst nimmt die Anmeldung Ihrer Firma von dort niemanden mehr neu auf.`,
    ja: ({ domain, ends_at: endsAt }) =>
      `${domain} を確認するレコードが DNS にありません。${time(endsAt)} までに戻さないと、会社のサインインでこのドメインの新しいメンバーを追加できなくなります。`,
    zh: ({ domain, ends_at: endsAt }) =>
      `DNS 中已没有验证 ${domain} 的记录。请在 ${time(endsAt)} 前恢复，否则贵公司的登录将不再接纳该域名的新成员。`,
  },
};

const fromWords = (language: NoticeLanguage, iso: string | undefined) => {
  if (iso === undefined) return '';
  const at = time(iso);
  return { en: ` from ${at} on`, de: ` ab ${at}`, ja: `（${at} から）`, zh: `（自 ${at} 起）` }[language];
};

/** The change of a model; else that of a ratio on all prices, of a plan or of the account. */
const priceLine =
  (language: NoticeLanguage, ofPlan: (plan: string) => string, ofAccount: string): Line =>
  ({ model, plan, before, after, from }) => {
    if (model !== undefined) return `${model}${fromWords(language, from)}: ${before} → ${after}`;
    return `${plan === undefined ? ofAccount : ofPlan(plan)}: × ${before} → × ${after}`;
  };

const priceChange: Words = {
  title: { en: 'Prices change', de: 'Preise ändern sich', ja: '価格が変更されます', zh: '价格变更' },
  line: {
    en: priceLine('en', (plan) => `All prices of the plan "${plan}"`, 'All prices of your account'),
    de: priceLine('de', (plan) => `Alle Preise des Tarifs „${plan}“`, 'Alle Preise Ihres Kontos'),
    ja: priceLine('ja', (plan) => `プラン「${plan}」のすべての価格`, 'アカウントのすべての価格'),
    zh: priceLine('zh', (plan) => `套餐“${plan}”的全部价格`, '您账户的全部价格'),
  },
};

type Terms = Pick<NoticeKind, 'unit' | 'beyond' | 'threshold' | 'first' | 'channels'>;

const kind = (name: string, terms: Terms, { title, line }: Words): NoticeKind => ({
  ...{ name, title, ...terms },
  line: (fields, language) => line[language](fields),
});

/** A new account has crossed nothing; shares begin at zero, and what ends was further away before. */
const balance = { unit: 'usd', beyond: 'below', first: 'silent', channels: ['mail'] } as const;
const share = { unit: 'share', beyond: 'above', first: 'sent', threshold: parseUsd('0.8') } as const;
const days = { unit: 'days', beyond: 'below', first: 'sent', channels: ['mail'] } as const;
const change = { unit: 'none', beyond: 'above', first: 'sent', threshold: 0n, channels: ['mail'] } as const;

export const kinds: readonly NoticeKind[] = [
  kind('low_balance', { ...balance, threshold: parseUsd('5') }, lowBalance),
  kind('cap_share', { ...share, channels: ['mail'] }, capShare),
  // Its shares stand in each budget.
  kind('budget_share', change, budgetShare),
  // Windows of hours fill again and again: a mail each time is for those who ask for it.
  kind('window_share', { ...share, channels: [] }, windowShare),
  kind('plan_end', { ...days, threshold: parseUsd('3') }, planEnd),
  kind('key_expiry', { ...days, threshold: parseUsd('7') }, keyExpiry),
  // How old a key may be is a rule of each company.
  kind('key_age', { ...days, beyond: 'above', threshold: parseUsd('90'), channels: [] }, keyAge),
  kind('credit_overdue', change, creditOverdue),
  kind('price_change', change, priceChange),
  kind('domain_record', change, domainRecord),
];
