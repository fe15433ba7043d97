use super::*;
use crate::cases::each;
use crate::profile::Profile;

fn of(text: &str, list: bool) -> Evidence {
    let mut evidence = Evidence::new(list, vec!["error".to_owned()]);
    let members = members_of(Raw::of(text)).expect("an object");
    evidence.object(&mut Vec::new(), &members).expect("valid members");
    evidence
}

#[test]
fn failures_that_a_response_reports_are_found_whatever_they_are_called() {
    let cases = [
        r#"{"errors":[{"code":"SHARD_FAILED"}]}"#,
        r#"{"timed_out":true}"#,
        r#"{"window":{"from":"2026-11-20T00:00:00Z","clipped":true}}"#,
        r#"{"timedOut":true}"#,
        r#"{"meta":{"isPartial":true}}"#,
        r#"{"_shards":{"total":5,"failed":2,"successful":3}}"#,
        r#"{"_shards":{"total":5,"successful":3}}"#,
        r#"{"incompleteResults":true}"#,
        r#"{"complete":false}"#,
        r#"{"success":false}"#,
        r#"{"status":"partial"}"#,
        r#"{"status":{"state":"TIMED_OUT"}}"#,
        r#"{"error":"shard 3 is down"}"#,
        r#"{"data":{"errors":{"team":"unavailable"}}}"#,
        r#"{"failedShards":1}"#,
        r#"{"terminated_early":true}"#,
        r#"{"_clusters":{"total":3,"successful":2,"skipped":1}}"#,
        r#"{"status":"PARTIAL_RESULTS"}"#,
        r#"{"state":"PROCESSING"}"#,
        r#"{"isComplete":"false"}"#,
        r#"{"completeness":0.6}"#,
        r#"{"coverage":60}"#,
        r#"{"meta":{"sample_rate":0.1}}"#,
        r#"{"containsSampledData":true}"#,
        r#"{"partialFailures":1}"#,
        r#"{"unavailable_shards":2}"#,
        r#"{"missingSources":["x.com"]}"#,
        r#"{"warnings":["Results may be incomplete: 2 sources did not answer"]}"#,
        r#"{"message":"query timed out"}"#,
        r#"{"code":50001,"msg":"internal error"}"#,
        r#"{"status":500}"#,
        r#"{"meta":{"statusCode":"503"}}"#,
        r#"{"errno":7}"#,
        r#"{"error_code":3}"#,
        r#"{"ret":-1}"#,
        r#"{"status":"fail"}"#,
        r#"{"status":"running"}"#,
        r#"{"meta":{"state":"NOT READY"}}"#,
        r#"{"exception":{"class":"Timeout"}}"#,
        r#"{"fault":{"faultstring":"Rate limit quota violation"}}"#,
        r#"{"meta":{"problems":["a shard did not answer"]}}"#,
        r#"{"quotaExceeded":true}"#,
        r#"{"limit_reached":true}"#,
        r#"{"exhaustive":false}"#,
        r#"{"percentComplete":60}"#,
        r#"{"processing":true}"#,
        r#"{"meta":{"ready":false}}"#,
        r#"{"warnings":["2 of 3 indexes did not answer"]}"#,
        r#"{"failedSources":["x.com"]}"#,
        r#"{"omittedResults":225}"#,
        r#"{"meta":{"sources":[{"name":"x.com","status":"timeout"},{"name":"reddit.com","status":"ok"}]}}"#,
        r#"{"shards":[{"id":1,"ok":false}]}"#,
        r#"{"sources":{"x.com":"timeout"}}"#,
        r#"{"nodes":[{"id":"a","shards":[{"failed":true}]}]}"#,
        r#"{"partial":1}"#,
        r#"{"timed_out":1}"#,
        r#"{"isPartial":"Y"}"#,
        r#"{"timedOut":"yes"}"#,
        r#"{"truncated":"1"}"#,
        r#"{"backfillInProgress":true}"#,
        r#"{"isComplete":"no"}"#,
        r#"{"complete":0}"#,
        r#"{"meta":{"success":"0"}}"#,
        r#"{"resultsComplete":"N"}"#,
        r#"{"complete":0.75}"#,
        r#"{"errors":2}"#,
        r#"{"meta":{"errorCount":3}}"#,
        r#"{"error_count":"1"}"#,
        r#"{"failed":2}"#,
        r#"{"responseMetadata":{"numFailures":1}}"#,
        r#"{"timeouts":1}"#,
        r#"{"error":7}"#,
        r#"{"status":206}"#,
        r#"{"responseStatus":"206 Partial Content"}"#,
        r#"{"meta":{"httpStatusCode":"503 Service Unavailable"}}"#,
        r#"{"nodes":{"total":5,"responded":3}}"#,
        r#"{"sources":{"queried":5,"healthy":3}}"#,
        r#"{"meta":{"sourcesQueried":5,"sourcesResponded":3}}"#,
        r#"{"completion":0.75}"#,
        r#"{"meta":{"coverage":"60%"}}"#,
        r#"{"quality":"degraded"}"#,
        r#"{"unreachableNodes":2}"#,
        r#"{"indexing":{"inProgress":true}}"#,
        r#"{"reindexing":{"status":"running"}}"#,
        r#"{"backfill":{"complete":false}}"#,
        r#"{"sampling":{"enabled":true,"rate":0.5}}"#,
        r#"{"sampling":{"enabled":true}}"#,
        r#"{"hosts":{"total":5,"responded":3}}"#,
        r#"{"warnings":["2 user feeds timed out"]}"#,
        r#"{"sampling":true}"#,
        r#"{"window":{"sampling":0.5}}"#,
        r#"{"sampling":{"percentage":"10%"}}"#,
        r#"{"samplingLevel":"SMALL"}"#,
        r#"{"meta":{"sampling":{"level":"LARGE"}}}"#,
        r#"{"mentions":{"omitted":89}}"#,
        r#"{"warnings":["renew your account","results were truncated"]}"#,
        r#"{"warnings":["Your account reads incomplete results"]}"#,
        r#"{"shard3":{"status":"failed"}}"#,
        r#"{"sources":{"user-posts":{"status":"pending"}}}"#,
        r#"{"lake":{"status":"partial"},"pond":{"truncated":true}}"#,
        r#"{"teamSearchesIncomplete":true}"#,
        r#"{"aggregations":{"complete":false}}"#,
        r#"{"facets":{"complete":false}}"#,
        r#"{"documents":{"status":"failed"}}"#,
        r#"{"articles":{"success":false}}"#,
        r#"{"articles":{"success":"no"}}"#,
        r#"{"provider":{"status":"failed"}}"#,
        r#"{"project":{"truncated":true}}"#,
        r#"{"campaign":{"partial":true}}"#,
        r#"{"user":{"timedOut":"yes","status":"failed"}}"#,
        r#"{"samplingLevel":"SMALL","successRate":100}"#,
        r#"{"samplingLevel":"SMALL","alertsEnabled":false}"#,
        r#"{"samplingRate":0.5}"#,
        r#"{"excludedShards":2}"#,
        r#"{"warnings":[[{"text":"results were truncated"}]]}"#,
        r#"{"warnings":[{"code":"PARTIAL_RESULTS"}]}"#,
        r#"{"meta":{"warnings":[{"code":"PARTIAL_RESULTS","message":"3 of 5 shards failed"}]}}"#,
        r#"{"warnings":["not all searches could be loaded"]}"#,
        r#"{"searchWarning":"something was left out"}"#,
        r#"{"warnings":{"reddit":"could not be reached"}}"#,
        r#"{"teamSavedSearches":null,"teamError":"upstream timeout"}"#,
        r#"{"data":{"teamErrors":["upstream timeout"]}}"#,
        r#"{"errors":{"team":"upstream timeout"}}"#,
        r#"{"errorDescription":"a shard is down"}"#,
        r#"{"pending":true}"#,
        r#"{"mentions":{"running":true}}"#,
        r#"{"unavailable":["reddit"]}"#,
        r#"{"unavailable":"reddit"}"#,
        r#"{"unreachable":2}"#,
        r#"{"omitted":["x.com"]}"#,
        r#"{"mentions":{"cut":true}}"#,
        r#"{"maxReached":true}"#,
        r#"{"overview":{"state":"RUNNING"}}"#,
        r#"{"overview":{"done":false}}"#,
        r#"{"overview":{"inProgress":true}}"#,
        r#"{"overview":{"errorCount":2}}"#,
        r#"{"overview":{"truncated":true}}"#,
    ];
    each(cases, |text| {
        assert!(of(text, false).check().is_err(), "{text}");
    });
}

#[test]
fn large_and_deep_objects_take_little_time() {
    let members = |of: &dyn Fn(usize) -> String| format!("{{{}}}", (0..20_000).map(of).collect::<Vec<_>>().join(","));
    let cases = [
        (members(&|at| format!(r#""a{at}":{at}"#)), true),
        (members(&|at| format!(r#""sampling_{at}_rate":1"#)), true),
        (members(&|at| format!(r#""a{at}":{at}"#)).replace(r#""a19999":19999"#, r#""samplingLevel":"SMALL""#), false),
        (format!(r#"{{"warnings":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000)), true),
        (format!(r#"{{"warnings":"{}truncated"}}"#, " ".repeat(LONGEST)), true),
    ];
    each(cases, |(text, complete)| {
        let start = std::time::Instant::now();
        assert_eq!(of(&text, false).check().is_ok(), complete, "{text:.60}");
        assert!(start.elapsed().as_secs() < 5, "{text:.60}");
    });
}

#[test]
fn the_states_of_other_things_are_not_those_of_the_response() {
    let cases = [
        r#"{"user":{"status":"pending"},"currentUser":{"errors":2}}"#,
        r#"{"billing":{"status":"failed"},"data":{"export":{"status":"pending","progress":0.4}}}"#,
        r#"{"autoComplete":{"complete":false}}"#,
        r#"{"autoComplete":false,"billingStatus":"failed","profileIncomplete":true}"#,
        r#"{"notices":["Your account profile is incomplete"]}"#,
        r#"{"notices":["this version will be unavailable soon"],"message":"Your user profile is incomplete"}"#,
        r#"{"features":{"partialResults":true},"onboarding":{"complete":0}}"#,
        r#"{"lake":{"status":"pending","ready":false,"completion":0.5}}"#,
        r#"{"webhooks":{"failed":3,"total":5},"surveys":{"total":5,"responded":2}}"#,
        r#"{"user":{"status":"pending"}}"#,
        r#"{"billing":{"status":"failed"}}"#,
        r#"{"export":{"status":"pending"}}"#,
        r#"{"lake":{"status":"queued","ready":"no"}}"#,
        r#"{"warnings":[{"source":"account","message":"Your user profile is incomplete"}]}"#,
    ];
    each(cases, |text| {
        assert!(of(text, false).check().is_ok(), "{text}");
    });
    // The profile reads from this object: its sections are those of a team.
    let mut evidence = Evidence::new(true, Vec::new());
    let members = members_of(Raw::of(r#"{"partial":true}"#)).expect("an object");
    evidence.object(&mut vec!["team".to_owned()], &members).expect("valid members");
    assert!(evidence.check().is_err());
}

#[test]
fn responses_that_report_none_are_complete() {
    let cases = [
        r#"{"errors":[]}"#,
        r#"{"errors":null,"error":""}"#,
        r#"{"errors":{}}"#,
        r#"{"page":{"size":100,"clamped":1}}"#,
        r#"{"timed_out":false,"took":5}"#,
        r#"{"_shards":{"total":5,"failed":0,"successful":5}}"#,
        r#"{"_shards":{"total":5,"skipped":2,"successful":3}}"#,
        r#"{"complete":true,"success":true,"status":"ok"}"#,
        r#"{"search":{"status":"running"},"savedSearch":{"state":"waiting"}}"#,
        r#"{"allowPartialResults":true,"timeout":30,"timeout_ms":"500"}"#,
        r#"{"error":{"code":"x"}}"#,
        r#"{"error":false,"errorCount":0}"#,
        r#"{"warnings":["deprecated"]}"#,
        r#"{"sources":[{"name":"timeout","count":5},"failed",3],"regions":{"eu":"ok"}}"#,
        r#"{"query":"errors","name":"partial"}"#,
        r#"{"stats":{"failed":3}}"#,
        r#"{"textTruncated":true}"#,
        r#"{"incomplete":true,"hasMore":true}"#,
        r#"{"coverage":1,"completeness":100,"progress":1.0,"sampleRate":1}"#,
        r#"{"_clusters":{"total":3,"successful":3,"skipped":0}}"#,
        r#"{"message":"ok","warnings":["parameter x is deprecated"]}"#,
        r#"{"missingSources":[],"search":{"state":"RUNNING"}}"#,
        r#"{"code":0,"errno":0,"status":200,"ret":0,"error_code":"0"}"#,
        r#"{"code":20000,"status":1,"postalCode":50001,"account":{"code":50001}}"#,
        r#"{"partial":0,"timed_out":"no","isPartial":"N","timeout":1,"retries":1,"page":1}"#,
        r#"{"partialMatches":1,"truncatedFields":1,"summary":{"inProgress":1},"counts":{"partial":1}}"#,
        r#"{"account":{"exportInProgress":true},"importInProgress":true}"#,
        r#"{"rateLimitExceeded":true,"failedSources":[],"omittedResults":0,"exception":null,"fault":{},"problems":[],"percentComplete":100}"#,
        r#"{"errors":0,"failed":"0","timeouts":0,"error":200,"meta":{"errorRate":0.5}}"#,
        r#"{"isComplete":"yes","complete":1,"success":"1","completion":1,"quality":"high","stale":true}"#,
        r#"{"counts":{"complete":0},"jobs":{"complete":0,"total":7},"successful":0}"#,
        r#"{"nodes":{"total":5,"responded":5},"sources":{"total":40,"active":3}}"#,
        r#"{"sampling":{"enabled":true,"rate":1},"samplingLevel":"NONE"}"#,
        r#"{"sampling":"off","samplingLevel":"DEFAULT","sampleSize":1000,"sample":50}"#,
        r#"{"samplingLevel":"FULL","window":{"sampling":1},"sampling_rate":"100%"}"#,
        r#"{"sampling":{"enabled":false,"rate":0.5,"method":"random"},"sample":{"type":"news"}}"#,
        r#"{"query":{"excludedSources":["x.com"]},"excludedSources":["x.com"],"indexing":{"inProgress":false}}"#,
        r#"{"status":"200 OK","responseStatus":200,"mentions":{"omitted":0}}"#,
        r#"{"samplingEnabled":false,"samplingRate":0.5}"#,
        r#"{"samplingMode":"auto"}"#,
        r#"{"total":300,"answered":20}"#,
        r#"{"data":{"code":4711},"results":{"code":"50123"}}"#,
        r#"{"warnings":[{"code":"DEPRECATED","link":"https://x.test/partial"}],"warningCount":0}"#,
        r#"{"warnings":["rate limit: 3 of 60 requests left","see ticket 4711"]}"#,
        r#"{"lastError":"timeout","teamError":null,"errorMessage":"","search":{"running":true,"pending":true}}"#,
        r#"{"pending":false,"unavailable":[],"unreachable":0,"cut":false,"fallback":true,"limited":true}"#,
        r#"{"done":false,"overview":{"done":true,"truncated":false,"errorCount":0}}"#,
    ];
    each(cases, |text| {
        assert!(of(text, false).check().is_ok(), "{text}");
    });
}

#[test]
fn what_may_mean_a_part_is_a_doubt() {
    let cases = [
        (r#"{"warnings":["see ticket 4711"]}"#, true),
        (r#"{"meta":{"warning":{"code":"E7"}}}"#, true),
        (r#"{"warningCount":2}"#, true),
        (r#"{"limited":true}"#, true),
        (r#"{"mentions":{"fallback":"eu-2"}}"#, true),
        (r#"{"warnings":[],"warning":null,"warningCount":0}"#, false),
        (r#"{"warnings":["the parameter `x` is deprecated"],"message":"welcome","notices":["hello"]}"#, false),
        (r#"{"limited":false,"cached":true,"search":{"limited":true},"user":{"restricted":true}}"#, false),
    ];
    each(cases, |(text, doubts)| {
        let evidence = of(text, false);
        assert_eq!((evidence.check().is_ok(), evidence.doubt().is_some()), (true, doubts), "{text}");
    });
}

#[test]
fn the_rest_of_a_list_is_told_in_many_words() {
    let table = &Profile::v4().tables.saved_searches;
    let rest = |text: &str| of(text, true).rest(table, &[8, 2, 0], None);
    let cases = [
        r#"{"paging":{"next":"/v4/list?dataFrom=10"}}"#,
        r#"{"data":{"total":30}}"#,
        r#"{"data":{"total":"1,030"}}"#,
        r#"{"totalCount":11}"#,
        r#"{"data":{"hasMore":true}}"#,
        r#"{"meta":{"page":1,"pages":3}}"#,
        r#"{"meta":{"last":false}}"#,
        r#"{"_links":{"next":{"href":"/x"}}}"#,
        r#"{"nextPageToken":"abc"}"#,
        r#"{"@odata.nextLink":"https://x"}"#,
        r#"{"nextOffset":10}"#,
        r#"{"isTruncated":true}"#,
        r#"{"done":false}"#,
        r#"{"hits":{"total":{"value":30,"relation":"eq"}}}"#,
        r#"{"from":1,"to":10,"of":30}"#,
        r#"{"links":[{"rel":"self","href":"/a"},{"rel":"next","href":"/b"}]}"#,
        r#"{"link":[{"relation":"next","url":"/b"}]}"#,
        r#"{"end_of_stream":false}"#,
        r#"{"data":{"after":"t3_x","before":null}}"#,
        r#"{"exceededTransferLimit":true}"#,
        r#"{"search_metadata":{"next_results":"?max_id=1"}}"#,
        r#"{"meta":{"counts":{"savedSearches":30}}}"#,
        r#"{"@odata.count":12}"#,
        r#"{"odata.count":"12"}"#,
        r#"{"hydra:totalItems":12}"#,
        r#"{"opensearch:totalResults":12}"#,
        r#"{"nbHits":12}"#,
        r#"{"itemCount":12}"#,
        r#"{"range":"0-9/12"}"#,
        r#"{"meta":{"contentRange":"items 0-9/12"}}"#,
        r#"{"page":"1/3"}"#,
        r#"{"paging":{"page":"1 of 3"}}"#,
        r#"{"NextMarker":"abc"}"#,
        r#"{"marker":"abc"}"#,
        r#"{"data":{"pageToken":"abc"}}"#,
        r#"{"cursor":"abc"}"#,
        r#"{"cursor":"abc","count":10}"#,
        r#"{"_scroll_id":"abc"}"#,
        r#"{"LastEvaluatedKey":{"aid":{"S":"7"}}}"#,
        r#"{"LastEvaluatedKey":"abc"}"#,
        r#"{"search_after":[1764547200000,"7"]}"#,
        r#"{"savedSearches":{"total":12}}"#,
        r#"{"searchMetadata":{"total":12},"users":{"total":3}}"#,
        r#"{"notifications":{"hasMore":false},"cursor":"abc"}"#,
        r#"{"cursor":"abc","nextRun":null}"#,
        r#"{"lake":{"hasMore":true}}"#,
        r#"{"autoTruncated":true}"#,
        r#"{"paging":{"cursors":{"before":"x","after":"y"}}}"#,
        r#"{"limit":10,"returned":10,"offset":0}"#,
        r#"{"maxItems":10}"#,
        r#"{"paging":{"per_page":"10"}}"#,
        r#"{"data":{"pageSize":10,"count":10}}"#,
        r#"{"endCursor":"abc"}"#,
        r#"{"pageInfo":{"endCursor":"abc"}}"#,
        r#"{"resumeToken":"abc"}"#,
        r#"{"endCursor":"2026-01-01T00:00:00Z"}"#,
        r#"{"bookmark":17}"#,
        r#"{"data":{"nextAid":"183001"}}"#,
        r#"{"message":"Showing 10 of 12 saved searches"}"#,
        r#"{"meta":{"info":"1-10 out of a total of 1,030."}}"#,
        r#"{"note":"Page 1 of 3"}"#,
        r#"{"message":"1 to 10 of 12"}"#,
        r#"{"message":"10 of 12 results"}"#,
        r#"{"shown":"10 of 12"}"#,
        r#"{"message":"Showing 10 of 12 saved searches, the limit of your plan"}"#,
    ];
    each(cases, |text| {
        assert!(matches!(rest(text), Rest::More(_)), "{text}: {:?}", rest(text));
    });
    let cases = [
        r#"{"data":{"total":10,"size":10}}"#,
        r#"{"paging":{"next":null}}"#,
        r#"{"hasMore":false,"pages":1,"page":1}"#,
        r#"{"next":""}"#,
        r#"{"done":true}"#,
        r#"{"end_of_stream":true}"#,
        r#"{"data":{"after":""}}"#,
        r#"{"paging":{"hasMore":false,"after":"x"}}"#,
        r#"{"exceededTransferLimit":false}"#,
        r#"{"counts":{"savedSearches":10}}"#,
        r#"{"cursor":"abc","total":10}"#,
        r#"{"paging":{"hasMore":false},"_scroll_id":"abc"}"#,
        r#"{"@odata.count":10,"range":"0-9/10","page":"1/1"}"#,
        r#"{"users":{"total":300},"total":10}"#,
        r#"{"next_cursor":0}"#,
        r#"{"links":{"next":null}}"#,
        r#"{"limit":10,"total":10}"#,
        r#"{"limit":10,"hasMore":false}"#,
        r#"{"paging":{"cursors":{"after":"y"},"hasMore":false}}"#,
        r#"{"hasNext":"no"}"#,
    ];
    each(cases, |text| {
        assert_eq!(rest(text), Rest::None, "{text}");
    });
    let cases = [
        r#"{"limit":100,"perPage":50,"max":1000,"quota":5000}"#,
        r#"{"totalMentions":16332,"unreadCount":40}"#,
        r#"{"requestId":"1","nextUpdate":"2026-01-01"}"#,
        r#"{"after":"2026-01-01","query":{"after":"x"},"links":[{"rel":"self","href":"/a"},{"rel":"next","href":""},5]}"#,
        r#"{"counts":{"mentions":30},"endDate":"2026-01-01"}"#,
        r#"{"user":{"isEndUser":false},"end_of_life":false,"endOfDay":false}"#,
        r#"{"_shards":{"total":50,"successful":50,"failed":0},"rateLimit":{"remaining":99}}"#,
        r#"{"users":{"total":300},"teams":{"count":40},"folders":{"count":40},"tags":{"total":40}}"#,
        r#"{"alerts":{"total":40,"pages":4},"dashboards":{"count":40},"organisation":{"count":40}}"#,
        r#"{"data":{"team":{"members":{"total":40}},"stats":{"total":40},"archived":{"total":40}}}"#,
        r#"{"users":{"paging":{"total":300,"remaining":5}},"seats":{"remaining":5}}"#,
        r#"{"cursor":"","marker":null,"pageToken":"0","query":{"cursor":"abc"},"search_after":[]}"#,
        r#"{"notifications":{"hasMore":true}}"#,
        r#"{"notifications":{"hasMore":false},"lake":{"hasMore":false}}"#,
        r#"{"range":"2026-01-01/2026-02-01","page":"overview","user":{"marker":"x"},"contentRange":"bytes 0-9/99"}"#,
        r#"{"message":"3 of 5 seats are used","note":"Showing 10 of 10 saved searches","csrfToken":"abc","sessionToken":"abc"}"#,
        r#"{"startCursor":"abc","nextUpdate":"2026-01-01T00:00:00Z","moreInfo":"https://docs.test/lists"}"#,
        r#"{"message":"You use 10 of 12 saved searches","plan":"10 of 12 seats","meta":{"quota":"10 of 12 items"}}"#,
        r#"{"tokenExpiresAt":"2026-01-01T00:00:00Z","token_expires_in":3600,"tokenType":"bearer","token":"2026-01-01"}"#,
        r#"{"syncToken":"abc","shareToken":"abc","publicToken":"abc","teamToken":"abc"}"#,
        r#"{"hasMore":"no","nextRun":"daily","nextReset":"0600","nextTip":"read the manual"}"#,
    ];
    each(cases, |text| {
        assert_eq!(rest(text), Rest::Unknown, "{text}");
    });
}

#[test]
fn a_page_of_a_list_says_how_many_pages_there_are_and_how_many_entries_it_has() {
    let table = &Profile::v4().tables.saved_searches;
    // Ten entries on each page.
    let rest = |text: &str, pages: u64, first: u64| {
        let last = [8, 2, 0];
        of(text, true).rest(table, &last.map(|entries| entries * pages), Some((&last, (pages, first))))
    };
    for text in [r#"{"data":{"count":10}}"#, r#"{"numResults":10}"#] {
        assert_eq!((rest(text, 1, 1), rest(text, 2, 1)), (Rest::Unknown, Rest::Unknown), "{text}");
    }
    for (text, first) in
        [(r#"{"pages":3}"#, 0), (r#"{"totalPages":3}"#, 1), (r#"{"lastPage":3}"#, 1), (r#"{"lastPage":2}"#, 0)]
    {
        assert!(matches!(rest(text, 2, first), Rest::More(_)), "{text}");
        assert_eq!(rest(text, 3, first), Rest::None, "{text}");
    }
    assert!(matches!(rest(r#"{"pagesRemaining":1}"#, 3, 1), Rest::More(_)));
    assert_eq!(rest(r#"{"pagesRemaining":0}"#, 4, 1), Rest::None);
    assert_eq!(rest(r#"{"data":{"total":10}}"#, 1, 1), Rest::None);
    assert_eq!(rest(r#"{"data":{"count":20}}"#, 2, 1), Rest::None);
}

#[test]
fn mentions_that_follow_are_told_by_words_and_not_by_numbers() {
    let cases = [
        (r#"{"mentions":{"hasMore":true}}"#, Some("`/mentions/hasMore` is true")),
        (r#"{"paging":{"next":"/search?x=1"}}"#, Some(r#"`/paging/next` is "/search?x=1""#)),
        (r#"{"hasMore":false,"nextCursor":"abc"}"#, Some(r#"`/nextCursor` is "abc""#)),
        (r#"{"truncated":true}"#, Some("`/truncated` is true")),
        (r#"{"autoTruncated":true}"#, Some("`/autoTruncated` is true")),
        (
            r#"{"mentions":{"links":[{"rel":"next","href":"/b"}]}}"#,
            Some(r#"`/mentions/links` is [{"rel":"next","href":"/b"}]"#),
        ),
        (r#"{"end_of_stream":false}"#, Some("`/end_of_stream` is false")),
        (r#"{"hasMore":false,"next":null}"#, None),
        (r#"{"total":450,"totalPages":5,"nextOffset":"200"}"#, None),
        (r#"{"cursor":"abc","_scroll_id":"abc","page":"2/3","range":"0-4/12"}"#, None),
        (r#"{"NextMarker":"abc"}"#, Some(r#"`/NextMarker` is "abc""#)),
    ];
    each(cases, |(text, says)| {
        assert_eq!(of(text, false).more().as_deref(), says, "{text}");
    });
}

#[test]
fn a_number_counts_the_sections_that_it_stands_beside() {
    let mut table = Profile::v4().tables.saved_searches;
    table.sections[0].at = Pointer::of(["data", "saved", "items"]);
    table.sections[1].at = Pointer::of(["data", "team", "items"]);
    let rest = |text: &str| of(text, true).rest(&table, &[10, 10, 0], None);
    assert!(matches!(rest(r#"{"data":{"saved":{"total":15},"team":{"total":10}}}"#), Rest::More(_)));
    assert_eq!(rest(r#"{"data":{"saved":{"total":10},"team":{"total":10}},"total":20}"#), Rest::None);
}
